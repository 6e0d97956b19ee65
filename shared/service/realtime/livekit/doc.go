// Package livekit has what this server speaks of LiveKit's client protocol
// (docs/contract/realtime.md#webrtc): the messages of a room's signalling, the
// requests that open it, and the tokens that admit to it.
package livekit

// The programs are those of PyPI's grpcio-tools and of google.golang.org/protobuf/cmd/protoc-gen-go.
//go:generate python3 -m grpc_tools.protoc -I. --go_out=. --go_opt=paths=source_relative signal.proto
