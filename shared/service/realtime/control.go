package realtime

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"strings"
	"sync"
	"time"
	"unicode/utf8"

	"cutroom/shared/domain/fault"
	"cutroom/shared/engine"
)

const enhanceTime = 10 * time.Second

const changeTime = 10 * time.Second

func (c *connection) control() {
	for {
		select {
		case <-c.life.Done():
			return
		case message := <-c.controls:
			c.handle(message)
		}
	}
}

func (c *connection) handle(message clientMessage) {
	defer message.release()
	switch message.Type {
	case "prompt":
		ack := promptAck{Type: "prompt_ack", Prompt: message.Prompt}
		if len(ack.Prompt) > maxPromptJSON {
			ack.Prompt = nil // escaped, it may have six times the size
		}
		outcome, err := c.changePrompt(message)
		ack.Error, ack.outcomeBody = c.explain(err), c.newOutcomeBody(outcome, err)
		ack.Success = ack.Error == ""
		c.say(ack)
	case "set_image":
		ack := setImageAck{Type: "set_image_ack"}
		outcome, err := c.changeImage(message)
		ack.Error, ack.outcomeBody = c.explain(err), c.newOutcomeBody(outcome, err)
		ack.Success = ack.Error == ""
		c.say(ack)
	case "livekit_join":
		c.join(message)
	default:
		c.say(errorMessage{"error", "Unknown message type. Send prompt, set_image or a binary frame."})
	}
}

func (c *connection) newOutcomeBody(o engine.Outcome, err error) outcomeBody {
	body := outcomeBody{Engine: o.Engine, Understood: o.Understood, Notice: o.Notice}
	if err == nil && c.admission.notice != "" {
		body.Notice = strings.TrimSpace(c.admission.notice + " " + o.Notice)
		c.admission.notice = ""
	}
	return body
}

func (c *connection) explain(err error) string {
	var wrong *fault.Error
	switch {
	case err == nil:
		return ""
	case errors.As(err, &wrong) && (wrong.Code == fault.Invalid || wrong.Code == fault.Limited):
		return wrong.Message
	case errors.Is(err, context.DeadlineExceeded):
		return "The server is busy. Try again."
	case fault.Is(err, fault.Unavailable):
		c.server.config.Logger.Warn("cannot handle a message now", "session", c.session.ID(), "error", err)
		return "The server is busy. Try again."
	}
	if c.life.Err() == nil {
		c.server.config.Logger.Error("cannot handle a message", "session", c.session.ID(), "error", err)
	}
	return "Internal error"
}

func errTooFast() error { return fault.New(fault.Limited, "Too many changes. Slow down.") }

// changePrompt handles a prompt message.
//
// Errors: fault.Invalid; fault.Limited.
func (c *connection) changePrompt(message clientMessage) (outcome engine.Outcome, err error) {
	if !c.pace.changes.Allow() {
		return outcome, errTooFast()
	}
	asked, err := message.prompt()
	if err != nil {
		return outcome, err
	}
	if !asked.sent {
		return outcome, fault.New(fault.Invalid, "prompt is required.")
	}
	return c.setPrompt(asked)
}

type prompt struct {
	text string
	sent bool
	// enhance allows the prompt to be expanded, which is the default
	// (docs/contract/realtime.md#messages-of-the-client).
	enhance bool
}

func (m clientMessage) prompt() (asked prompt, err error) {
	asked.enhance = true
	if !isNull(m.EnhancePrompt) && json.Unmarshal(m.EnhancePrompt, &asked.enhance) != nil {
		return asked, fault.New(fault.Invalid, "enhance_prompt must be true or false.")
	}
	tooLong := fault.New(fault.Invalid, "prompt is longer than %d characters.", maxPrompt)
	if len(m.Prompt) > maxPromptJSON {
		return asked, tooLong
	}
	asked.text, asked.sent, err = textOf("prompt", m.Prompt)
	if strings.TrimSpace(asked.text) == "" {
		asked.text = "" // blank means empty, as in job forms
	}
	if utf8.RuneCountInString(asked.text) > maxPrompt {
		return asked, tooLong
	}
	return asked, err
}

// textOf returns a member's string value. sent is false if the member is absent or null.
//
// Errors: fault.Invalid.
func textOf(name string, member json.RawMessage) (text string, sent bool, err error) {
	if isNull(member) {
		return "", false, nil
	}
	if json.Unmarshal(member, &text) != nil {
		return "", false, fault.New(fault.Invalid, "%s must be a string.", name)
	}
	return text, true, nil
}

func isNull(member json.RawMessage) bool {
	return len(member) == 0 || bytes.Equal(member, []byte("null"))
}

// beginChange waits for the account's turn to change a prompt or an image. It returns false if the
// session ends first. It must be called before locking prompts.mu.
func (c *connection) beginChange() bool { return c.changes.Take(c.life, c.account()) }

func (c *connection) endChange() { c.changes.Release(c.account()) }

type prompts struct {
	mu         sync.Mutex
	superseded context.CancelFunc
	expanding  sync.WaitGroup
}

func (p *prompts) wait() { p.expanding.Wait() }

// setPrompt sets the editor's prompt immediately, and the expanded prompt when it is ready.
func (c *connection) setPrompt(asked prompt) (outcome engine.Outcome, err error) {
	if !c.beginChange() {
		return outcome, c.life.Err()
	}
	defer c.endChange()
	p := &c.prompts
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.superseded != nil {
		p.superseded()
		p.superseded = nil
	}
	outcome, err = c.setText(c.life, asked.text)
	if err != nil || c.server.config.Enhancer == nil || !asked.enhance || asked.text == "" {
		return outcome, err
	}
	ctx, cancel := context.WithTimeout(c.life, enhanceTime)
	p.superseded = cancel
	p.expanding.Go(c.contained("expand", func() {
		defer cancel()
		c.expandPrompt(ctx, asked.text)
	}))
	return outcome, nil
}

// prompts.mu must be locked.
func (c *connection) setText(ctx context.Context, text string) (engine.Outcome, error) {
	ctx, cancel := context.WithTimeout(ctx, changeTime)
	defer cancel()
	return c.editor.SetPrompt(ctx, text)
}

func (c *connection) expandPrompt(ctx context.Context, sent string) {
	expanded, err := c.server.config.Enhancer.Enhance(ctx, sent, maxPrompt)
	if !c.beginChange() {
		return
	}
	defer c.endChange()
	c.prompts.mu.Lock()
	defer c.prompts.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	if err == nil {
		_, err = c.setText(ctx, expanded)
	}
	if err != nil && ctx.Err() == nil {
		c.server.config.Logger.Warn("cannot expand a prompt; using the original", "session", c.session.ID(), "error", err)
	}
}
