"""The commands, as the command line's parser sees them."""

from cyclopts import App, Parameter

from twofold import __version__
from twofold.cli.call import call_tool
from twofold.cli.list import list_tools
from twofold.cli.serve import serve

app = App(
    name="twofold",
    help="Serve, list and call typed MCP tools.",
    version=__version__,
    help_format="plaintext",
    help_formatter="plain",
    default_parameter=Parameter(negative=(), negative_iterable=()),
    result_action="return_value",
    suppress_keyboard_interrupt=False,
)
app.command(serve, name="serve")
app.command(
    list_tools,
    name="list",
    usage="Usage: twofold list TARGET [--json]\n       twofold list [--json] -- COMMAND [ARGUMENTS]\n",
)
app.command(
    call_tool,
    name="call",
    usage="Usage: twofold call TARGET TOOL [JSON] [OPTIONS]\n"
    "       twofold call TOOL [JSON] [OPTIONS] -- COMMAND [ARGUMENTS]\n",
)
