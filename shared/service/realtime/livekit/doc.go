// Package livekit implements the part of LiveKit's client protocol that this server needs
// (docs/contract/realtime.md#webrtc): the signalling messages of a room, the requests that open the
// signalling, and the tokens.
//
// The messages have the names and numbers of the public definition (github.com/livekit/protocol,
// Apache-2.0), but only the fields that this server uses. A test compares them with the package
// livekit-protocol on PyPI.
package livekit
