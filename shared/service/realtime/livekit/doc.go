// Package livekit implements the used part of LiveKit's client protocol
// (docs/contract/realtime.md#webrtc): the messages of a room's signalling, the requests that open
// it, and its tokens.
//
// The messages have the names and numbers of the public definition (github.com/livekit/protocol,
// Apache-2.0), and only the fields that this server uses. A test compares them with the package
// livekit-protocol of PyPI.
package livekit
