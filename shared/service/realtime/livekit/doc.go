// Package livekit implements the part of LiveKit's client protocol that this server needs
// (docs/contract/realtime.md#webrtc).
//
// Messages have the same names and field numbers as in the public definition
// (github.com/livekit/protocol, Apache-2.0), but only the fields that this server uses.
package livekit
