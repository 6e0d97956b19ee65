package sqsqueue

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Message is what a job's message says.
type Message struct {
	// Job is the job's id.
	Job string `json:"job"`
	// Token is the task token by which the job's execution is reported to.
	Token string `json:"token"`
}

// ReadMessage reads the body of a message.
func ReadMessage(body string) (Message, error) {
	var m Message
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return Message{}, fmt.Errorf("sqs: a message: %w", err)
	}
	if m.Job == "" || m.Token == "" {
		return Message{}, errors.New("sqs: a message names no job, or has no token")
	}
	return m, nil
}
