package sqsqueue

import (
	"encoding/json"
	"errors"
	"fmt"
)

// Message is the body of a job's message.
type Message struct {
	// Job is the job's id.
	Job string `json:"job"`
	// Token is the task token with which workers report to the job's execution.
	Token string `json:"token"`
}

// ReadMessage reads the body of a message.
func ReadMessage(body string) (Message, error) {
	var m Message
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return Message{}, fmt.Errorf("sqs: read a message: %w", err)
	}
	if m.Job == "" || m.Token == "" {
		return Message{}, errors.New("sqs: a message has no job or no token")
	}
	return m, nil
}
