package sqsqueue

import (
	"encoding/json"
	"errors"
	"fmt"
)

type Message struct {
	Job   string `json:"job"`
	Token string `json:"token"`
}

func ReadMessage(body string) (Message, error) {
	var m Message
	if err := json.Unmarshal([]byte(body), &m); err != nil {
		return Message{}, fmt.Errorf("sqs: read a message: %w", err)
	}
	if m.Job == "" || m.Token == "" {
		return Message{}, errors.New("sqs: a message lacks a job or a token")
	}
	return m, nil
}
