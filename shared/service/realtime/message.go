package realtime

import "encoding/json"

// Bounds of what a client may send. A message beyond them ends the session with
// 1009.
const (
	// maxFrame is how large a frame may be, in bytes, and maxFramePixels how
	// many pixels it may have: those of 1920x1080, with the rows that codecs
	// add.
	maxFrame       = 2 << 20
	maxFramePixels = 1920 * 1088
	// maxFrameMemory is what decoding a frame may take, in bytes: the largest one,
	// progressive and without subsampling, takes 40 MB.
	maxFrameMemory = 48 << 20
	// maxImage is how large a reference image may be, in bytes, and
	// maxImagePixels how many pixels it may have.
	maxImage       = 10 << 20
	maxImagePixels = 24_000_000
	// maxText is how large a text message may be, in bytes: one with an image
	// in base64, a prompt whose every character is escaped, and some more.
	maxText = maxImage/3*4 + 128<<10
	// maxPrompt is how long a prompt may be, in code points
	// (docs/contract/realtime.md#messages-of-the-client).
	maxPrompt = 4000
)

// clientMessage is a text message of a client. Members are kept as they came, as
// null and absent are not the same.
type clientMessage struct {
	Type          string          `json:"type"`
	Prompt        json.RawMessage `json:"prompt"`
	EnhancePrompt json.RawMessage `json:"enhance_prompt"`
	ImageRef      json.RawMessage `json:"image_ref"`
	ImageData     json.RawMessage `json:"image_data"`
}

// The messages of the server (docs/contract/realtime.md#messages-of-the-server).
type (
	startedMessage struct {
		Type      string `json:"type"` // session_started
		SessionID string `json:"session_id"`
	}
	tickMessage struct {
		Type    string `json:"type"` // generation_tick
		Seconds int64  `json:"seconds"`
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
	}
	setImageAck struct {
		Type    string `json:"type"` // set_image_ack
		Success bool   `json:"success"`
		Error   string `json:"error,omitempty"`
	}
)
