// Package room transports the media of realtime sessions over WebRTC (docs/contract/realtime.md#webrtc). A
// session has a room. Its client publishes a camera there with LiveKit's client protocol. The session takes
// the frames and sends edited frames to the client and the viewers.
//
// The package moves compressed frames and does not decode them. Pure Go code reads everything that a client
// sends (signalling, session descriptions and packets), with limits on size and rate.
package room
