// Package room transports the media of realtime sessions over WebRTC
// (docs/contract/realtime.md#webrtc). A session's client publishes its camera in the session's
// room. The session receives the frames and sends edited ones to the client and the viewers.
//
// The package does not decode frames. Everything that a client sends is parsed in pure Go.
package room
