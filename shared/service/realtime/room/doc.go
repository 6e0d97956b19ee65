// Package room has the media of realtime sessions over WebRTC
// (docs/contract/realtime.md#webrtc). A session has a room: its client publishes a
// camera there by LiveKit's client protocol, the session takes the frames as they
// arrive, and what it sends back goes to the client and to those who watch.
//
// The package moves compressed frames; it decodes none. Everything that a client sends,
// signalling, session descriptions and packets, is read in this process by Go alone, with
// bounds on size and rate.
package room
