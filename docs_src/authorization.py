from twofold import Context, Forbidden, HttpRequest, MCPServer, ProtectedResource, ToolError, Unauthorized

TOKENS = {"t-ann": ("ann", {"shop:read"}), "t-bob": ("bob", {"shop:read", "shop:buy"})}  # stands for a library


def authorize(token: str, request: HttpRequest) -> tuple[str, frozenset[str]]:
    if token not in TOKENS:
        raise Unauthorized("the token is unknown, expired, or meant for another server")
    person, scopes = TOKENS[token]
    if request.mcp_name == "buy" and "shop:buy" not in scopes:  # early, so that the client can ask for more
        raise Forbidden("buying needs more", scope=["shop:read", "shop:buy"])
    return person, frozenset(scopes)


mcp = MCPServer(
    "shop",
    authorize=authorize,
    protected_resource=ProtectedResource(
        resource="https://mcp.example.com/mcp",
        authorization_servers=["https://auth.example.com"],
        scopes_supported=["shop:read", "shop:buy"],
        required_scopes=["shop:read"],
    ),
)


@mcp.tool()
def buy(ctx: Context, name: str) -> str:
    """Buy one product."""
    person, scopes = ctx.principal
    if "shop:buy" not in scopes:  # decides: clients of earlier revisions do not say in the head what they call
        raise ToolError("your token does not allow buying")
    return f"{person} bought {name}"
