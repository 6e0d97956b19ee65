package realtime

import (
	"encoding/json"

	"cutroom/shared/engine"
)

// Limits of what a client may send. A message beyond them ends the session with
// status 1009.
const (
	// maxFrame is the maximum size of a frame in bytes, and maxFramePixels its
	// maximum number of pixels: those of 1920x1080, with the rows that codecs
	// add.
	maxFrame       = 2 << 20
	maxFramePixels = 1920 * 1088
	// maxFrameMemory is how much memory decoding a frame may take, in bytes:
	// the largest frame, progressive and without subsampling, takes 40 MB.
	maxFrameMemory = 48 << 20
	// maxImage is the maximum size of a reference image in bytes, and
	// maxImagePixels its maximum number of pixels.
	maxImage       = 10 << 20
	maxImagePixels = 24_000_000
	// maxText is the maximum size of a text message in bytes: that of one with
	// an image in base64 and a prompt in which every character is escaped, and
	// some more.
	maxText = maxImage/3*4 + 128<<10
	// maxPrompt is the maximum length of a prompt in code points
	// (docs/contract/realtime.md#messages-of-the-client).
	maxPrompt = 4000
)

// clientMessage is a text message from a client. Its members are left
// undecoded, as null and absent differ.
type clientMessage struct {
	Type          string          `json:"type"`
	Prompt        json.RawMessage `json:"prompt"`
	EnhancePrompt json.RawMessage `json:"enhance_prompt"`
	ImageRef      json.RawMessage `json:"image_ref"`
	ImageData     json.RawMessage `json:"image_data"`

	// Capabilities are what a client can do that joins a room.
	Capabilities struct {
		FrameTiming bool `json:"frame_timing"`
	} `json:"client_capabilities"`

	// Queue is whether a client that joins waits for a session if none is free.
	Queue json.RawMessage `json:"queue"`

	// release gives back the memory that the message was counted for.
	release func()
}

// The messages of the server
// (docs/contract/realtime.md#messages-of-the-server).
type (
	startedMessage struct {
		Type      string `json:"type"` // session_started
		SessionID string `json:"session_id"`
	}
	// positionMessage says where a client stands in the line.
	positionMessage struct {
		Type     string `json:"type"` // queue_position
		Position int    `json:"position"`
		Size     int    `json:"queue_size"`
	}
	tickMessage struct {
		Type    string `json:"type"` // generation_tick
		Seconds int64  `json:"seconds"`
		// Notice is what the engine says of the last frame (see engine.LiveNoticer).
		Notice string `json:"notice,omitempty"`
	}
	generationMessage struct {
		Type string `json:"type"` // generation_started
	}
	// roomInfoMessage says where the session's media are (package room).
	roomInfoMessage struct {
		Type      string `json:"type"` // livekit_room_info
		URL       string `json:"livekit_url"`
		Token     string `json:"token"`
		RoomName  string `json:"room_name"`
		SessionID string `json:"session_id"`
	}
	endedMessage struct {
		Type    string `json:"type"` // generation_ended
		Seconds int64  `json:"seconds"`
		Reason  string `json:"reason"`
	}
	errorMessage struct {
		Type  string `json:"type"` // error
		Error string `json:"error"`
	}
	promptAck struct {
		Type string `json:"type"` // prompt_ack
		// Prompt is what was sent.
		Prompt  json.RawMessage `json:"prompt"`
		Success bool            `json:"success"`
		Error   string          `json:"error,omitempty"`
		told
	}
	setImageAck struct {
		Type    string `json:"type"` // set_image_ack
		Success bool   `json:"success"`
		Error   string `json:"error,omitempty"`
		told
	}
	// told is what the engine says of a change that was made (see engine.Outcome).
	told struct {
		Engine     string   `json:"engine,omitempty"`
		Understood []string `json:"understood,omitzero"`
		Notice     string   `json:"notice,omitempty"`
	}
)

func toldOf(o engine.Outcome) told {
	return told{Engine: o.Engine, Understood: o.Understood, Notice: o.Notice}
}
