"""What clients over HTTP may make an application keep and wait for."""

import msgspec


class Limits(msgspec.Struct, frozen=True, kw_only=True):
    """Bounds of one application, whatever runs it; times are in seconds.

    Attributes:
        requests: Worked on at once, those included whose clients have gone; more are answered 503.
        streams: Of changes, open at once; more are answered 503.
        authorize_seconds: For the author's `authorize` to say who calls; then 503.
        body_seconds: For a body to arrive; then 408.
        keep_alive_seconds: A stream that is silent for so long gets a comment, or proxies would close it; a quiet
            call becomes a stream for it.
        stall_seconds: A client that takes nothing for so long has gone.
        unsent_bytes: What may wait for one client to take it, from whoever sends without waiting; then it has gone.
        watch_after_seconds: A call that takes longer has somebody watch whether its client stays, which costs more
            than a small call.
        resumable_after_seconds: A call of a session that takes longer is answered as a stream, so that its client
            can resume it.
        retry_milliseconds: Told to clients of sessions: how long to wait before they resume.
        kept_bytes: What one stream of a session keeps for a client that comes back.
        running_bytes: What all streams of sessions together keep of calls that still run.
        retained_bytes: What all finished streams together keep.
        retention_seconds: So long a finished stream is kept.
        sessions: Open at once.
        session_idle_seconds: A session in which nothing ran and nobody listened for so long is ended.
        session_yielding_seconds: Where there is no place left, one that was idle for so long gives way.
        sweep_seconds: How often sessions are looked at.
    """

    requests: int = 1000
    streams: int = 1000
    authorize_seconds: float = 10.0
    body_seconds: float = 30.0
    keep_alive_seconds: float = 15.0
    stall_seconds: float = 60.0
    unsent_bytes: int = 16 * 1024 * 1024
    watch_after_seconds: float = 0.02
    resumable_after_seconds: float = 1.0
    retry_milliseconds: int = 1000
    kept_bytes: int = 4 * 1024 * 1024
    running_bytes: int = 256 * 1024 * 1024
    retained_bytes: int = 64 * 1024 * 1024
    retention_seconds: float = 60.0
    sessions: int = 1000
    session_idle_seconds: float = 30 * 60.0
    session_yielding_seconds: float = 60.0
    sweep_seconds: float = 10.0

    def __post_init__(self) -> None:
        """Refuse what bounds nothing."""
        for name in self.__struct_fields__:
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value < float("inf"):
                raise ValueError(f"limits: {name} is a number from 0 up, got {value!r:.80}")
