"""Streams of bytes and what is spoken on them: TLS, SPDY/3.1, HTTP/1.1, gRPC. Where they lead is the business of who opens them."""
