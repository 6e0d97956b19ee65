package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"

	"golang.org/x/term"

	"cutroom/shared/client"
)

const chatHelp = `/reset        forget the conversation
/model MODEL  continue with another model; without MODEL, list them
/exit         end, like Ctrl-D
Ctrl-C stops an answer.`

func (c *Chat) converse(ctx context.Context, s *Session) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		chat, err := c.begin(ctx, service)
		if err != nil {
			return err
		}
		// Here Ctrl-C stops an answer; only while a line is read does it end the
		// program. Elsewhere it ends the context.
		signal.Reset(os.Interrupt)
		interrupts := make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt)
		defer signal.Stop(interrupts)
		t := &talk{session: s, client: service, chat: chat, told: len(chat.Messages), interrupts: interrupts}
		fmt.Fprintf(s.Out, "Chat with %s; /help lists the commands.\n", printable(chat.Model))
		lines := newLineReader(s.In.(*os.File), s.Out)
		for {
			line, err := lines.read(ctx)
			if errors.Is(err, io.EOF) {
				return nil
			}
			if err != nil {
				return err
			}
			if line = strings.TrimSpace(line); line == "/exit" {
				return nil
			}
			if err := t.turn(ctx, line); err != nil {
				return err
			}
		}
	})
}

type talk struct {
	session *Session
	client  *client.Client
	chat    client.Chat
	// told is the number of messages from before the first turn.
	told       int
	interrupts <-chan os.Signal
}

// turn carries out a line. An error ends the conversation only if every later turn
// would meet it too.
func (t *talk) turn(ctx context.Context, line string) error {
	command, argument, _ := strings.Cut(line, " ")
	switch {
	case line == "":
		return nil
	case command == "/help":
		fmt.Fprintln(t.session.Out, chatHelp)
		return nil
	case command == "/reset":
		t.chat.Messages = t.chat.Messages[:t.told]
		fmt.Fprintln(t.session.Out, "Forgotten.")
		return nil
	case command == "/model":
		return t.tell(t.chooseModel(ctx, strings.TrimSpace(argument)))
	case strings.HasPrefix(line, "/"):
		fmt.Fprintf(t.session.Out, "There is no %s.\n%s\n", printable(command), chatHelp)
		return nil
	}
	return t.tell(t.say(ctx, line))
}

func (t *talk) say(ctx context.Context, line string) error {
	before := len(t.chat.Messages)
	t.chat.Messages = append(t.chat.Messages, client.Message{Role: "user", Content: line})
	answering, stop := context.WithCancel(ctx)
	defer stop()
	ended := make(chan struct{})
	go func() {
		select {
		case <-t.interrupts:
			stop()
		case <-ended:
		}
	}()
	answer, usage, err := t.session.answer(answering, t.client, t.chat)
	close(ended)
	stopped := answering.Err() != nil && ctx.Err() == nil
	if answer == "" || err != nil && !stopped {
		t.chat.Messages = t.chat.Messages[:before] // the line may be said again
	} else {
		t.chat.Messages = append(t.chat.Messages, client.Message{Role: "assistant", Content: answer})
	}
	switch {
	case stopped:
		fmt.Fprintln(t.session.Out, "(stopped)")
		return nil
	case err == nil && usage.TotalTokens > 0:
		fmt.Fprintf(t.session.Out, "(%d tokens)\n", usage.TotalTokens)
	}
	return err
}

func (t *talk) chooseModel(ctx context.Context, name string) error {
	models, err := t.client.InferenceModels(ctx)
	if err != nil {
		return err
	}
	for _, model := range models {
		if !model.Chats() {
			continue
		}
		if name == "" {
			fmt.Fprintln(t.session.Out, printable(model.ID))
		} else if model.ID == name {
			t.chat.Model = name
			fmt.Fprintf(t.session.Out, "Chat with %s.\n", printable(name))
			return nil
		}
	}
	if name != "" {
		fmt.Fprintf(t.session.Out, "No chat model is called %s.\n", printable(name))
	}
	return nil
}

// tell prints an error. It returns the error if it ends the conversation.
func (t *talk) tell(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	t.session.Report(err)
	return nil
}

type lineReader struct {
	input    *os.File
	terminal *term.Terminal
}

func newLineReader(input *os.File, output io.Writer) *lineReader {
	return &lineReader{input, term.NewTerminal(readWriter{input, output}, "> ")}
}

// read returns the next line; several lines that are pasted at once count as one. The terminal is in
// raw mode until read returns, and is then restored. If the context ends first, the last read of the
// terminal stays blocked until the program ends.
//
// Errors: io.EOF for Ctrl-C and Ctrl-D; the context's.
func (l *lineReader) read(ctx context.Context) (string, error) {
	descriptor := int(l.input.Fd())
	state, err := term.MakeRaw(descriptor)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(descriptor, state) }() // it is the terminal's own state
	if width, height, err := term.GetSize(descriptor); err == nil && width > 0 {
		_ = l.terminal.SetSize(width, height) // an odd size is shown oddly, no more
	}
	l.terminal.SetBracketedPasteMode(true)
	defer l.terminal.SetBracketedPasteMode(false)
	type typed struct {
		text string
		err  error
	}
	read := make(chan typed, 1)
	go func() {
		var text strings.Builder
		for {
			line, err := l.terminal.ReadLine()
			text.WriteString(line)
			if !errors.Is(err, term.ErrPasteIndicator) {
				read <- typed{text.String(), err}
				return
			}
			text.WriteString("\n")
		}
	}()
	select {
	case line := <-read:
		return line.text, line.err
	case <-ctx.Done():
		return "", context.Cause(ctx)
	}
}
