// Loaded before a server that listens at a fixed port of every address: it listens at a free port of the loopback
// address instead, and says which on stderr.
import net from "node:net";

const listen = net.Server.prototype.listen;
net.Server.prototype.listen = function (...args) {
  this.once("listening", () => console.error(`Serving at http://127.0.0.1:${this.address().port}/mcp `));
  return listen.call(this, { host: "127.0.0.1", port: 0 }, ...args.filter((each) => typeof each === "function"));
};
