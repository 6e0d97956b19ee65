// Package room transports the media of realtime sessions over WebRTC
// (docs/contract/realtime.md#webrtc). A session's client publishes a camera in its room. The
// session takes the frames and sends edited ones to the client and the viewers.
//
// The package does not decode frames. Pure Go code reads all that a client sends.
package room
