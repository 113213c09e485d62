"""Streams of bytes and the protocols on them: TLS, SPDY/3.1, HTTP/1.1, gRPC. The caller opens the streams."""
