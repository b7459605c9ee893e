"""The commands, as the command line's parser sees them."""

from cyclopts import App, Parameter

from twofold import __version__
from twofold.cli.call import call_tool
from twofold.cli.help_layout import HelpLayout
from twofold.cli.list import list_tools
from twofold.cli.serve import serve

_PLACEHOLDERS = {
    # Here, not beside the parameters: `serve` is loaded without the command line's libraries.
    "--http": "HOST:PORT",
    "--path": "PATH",
    "--allow-host": "NAME",
    "--allow-origin": "ORIGIN",
    "--workers": "N",
}

app = App(
    name="twofold",
    help="Serve, list and call typed MCP tools.",
    version=__version__,
    help_format="plaintext",
    group_parameters="Options",
    help_formatter=HelpLayout(_PLACEHOLDERS),
    default_parameter=Parameter(negative=(), negative_iterable=()),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
app.command(serve, name="serve", usage="Usage: twofold serve TARGET [OPTIONS]\n")
app.command(
    list_tools,
    name="list",
    usage="Usage: twofold list TARGET [OPTIONS]\n       twofold list [OPTIONS] -- COMMAND…\n",
)
app.command(
    call_tool,
    name="call",
    usage="Usage: twofold call TARGET TOOL [JSON] [OPTIONS]\n       twofold call TOOL [JSON] [OPTIONS] -- COMMAND…\n",
)
