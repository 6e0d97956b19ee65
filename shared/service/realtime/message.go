package realtime

import "encoding/json"

// Limits for a client's messages. A larger message ends the session with status 1009.
const (
	// maxFrame limits a frame's size in bytes. maxFramePixels limits it in pixels: 1920x1080 plus
	// the rows that codecs add.
	maxFrame       = 2 << 20
	maxFramePixels = 1920 * 1088
	// maxFrameMemory limits the memory for decoding a frame, in bytes. The largest frame needs 40 MB.
	maxFrameMemory = 48 << 20
	maxImage       = 10 << 20
	maxImagePixels = 24_000_000
	// maxText is the maximum size of a text message, in bytes. It may contain a base64 image and a prompt.
	maxText = maxImage/3*4 + 128<<10
	// maxPrompt is in code points (docs/contract/realtime.md#messages-of-the-client).
	maxPrompt = 4000
	// maxPromptJSON is the size of the longest prompt whose code points are all escaped as surrogate pairs, in bytes.
	maxPromptJSON = 12*maxPrompt + 2
)

// clientMessage is a text message from a client. Members stay undecoded, to distinguish null from absent members.
type clientMessage struct {
	Type          string          `json:"type"`
	Prompt        json.RawMessage `json:"prompt"`
	EnhancePrompt json.RawMessage `json:"enhance_prompt"`
	ImageRef      json.RawMessage `json:"image_ref"`
	ImageData     json.RawMessage `json:"image_data"`

	Capabilities struct {
		FrameTiming bool `json:"frame_timing"`
	} `json:"client_capabilities"`

	Queue json.RawMessage `json:"queue"`

	release func()
}

// Messages sent by the server (docs/contract/realtime.md#messages-of-the-server).
type (
	startedMessage struct {
		Type      string `json:"type"` // session_started
		SessionID string `json:"session_id"`
	}
	positionMessage struct {
		Type     string `json:"type"` // queue_position
		Position int    `json:"position"`
		Size     int    `json:"queue_size"`
	}
	tickMessage struct {
		Type    string `json:"type"` // generation_tick
		Seconds int64  `json:"seconds"`
	}
	generationMessage struct {
		Type string `json:"type"` // generation_started
	}
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
		Type    string          `json:"type"` // prompt_ack
		Prompt  json.RawMessage `json:"prompt"`
		Success bool            `json:"success"`
		Error   string          `json:"error,omitempty"`
		outcomeBody
	}
	setImageAck struct {
		Type    string `json:"type"` // set_image_ack
		Success bool   `json:"success"`
		Error   string `json:"error,omitempty"`
		outcomeBody
	}
	// outcomeBody is the outcome of a change (see engine.Outcome).
	outcomeBody struct {
		Engine     string   `json:"engine,omitempty"`
		Understood []string `json:"understood,omitzero"`
		Notice     string   `json:"notice,omitempty"`
	}
)
