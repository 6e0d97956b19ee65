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

const chatHelp = `/reset        clear the conversation
/model MODEL  switch to another model; without MODEL, list the models
/exit         quit, like Ctrl-D
Ctrl-C stops a reply.`

func (c *Chat) converse(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		chat, err := c.begin(ctx, service)
		if err != nil {
			return err
		}
		// In a chat, Ctrl-C stops a reply. It ends the program only while a line is being read.
		signal.Reset(os.Interrupt)
		interrupts := make(chan os.Signal, 1)
		signal.Notify(interrupts, os.Interrupt)
		defer signal.Stop(interrupts)
		t := &talk{invocation: s, client: service, chat: chat, kept: len(chat.Messages), interrupts: interrupts}
		fmt.Fprintf(s.Out, "Chat with %s; /help lists the commands.\n", printable(chat.Model))
		input := s.In.(*os.File)
		lines := &lineReader{input, term.NewTerminal(readWriter{input, s.Out}, "> ")}
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
	invocation *Invocation
	client     *client.Client
	chat       client.Chat
	kept       int
	interrupts <-chan os.Signal
}

// turn handles a line of input. It returns an error only if every later turn would also fail.
func (t *talk) turn(ctx context.Context, line string) error {
	command, argument, _ := strings.Cut(line, " ")
	switch {
	case line == "":
		return nil
	case command == "/help":
		fmt.Fprintln(t.invocation.Out, chatHelp)
		return nil
	case command == "/reset":
		t.chat.Messages = t.chat.Messages[:t.kept]
		fmt.Fprintln(t.invocation.Out, "Forgotten.")
		return nil
	case command == "/model":
		return t.report(t.chooseModel(ctx, strings.TrimSpace(argument)))
	case strings.HasPrefix(line, "/"):
		fmt.Fprintf(t.invocation.Out, "Unknown command %s.\n%s\n", printable(command), chatHelp)
		return nil
	}
	return t.report(t.say(ctx, line))
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
	answer, usage, err := t.invocation.answer(answering, t.client, t.chat)
	close(ended)
	stopped := answering.Err() != nil && ctx.Err() == nil
	if answer == "" || err != nil && !stopped {
		t.chat.Messages = t.chat.Messages[:before] // the user can send the line again
	} else {
		t.chat.Messages = append(t.chat.Messages, client.Message{Role: "assistant", Content: answer})
	}
	switch {
	case stopped:
		fmt.Fprintln(t.invocation.Out, "(stopped)")
		return nil
	case err == nil && usage.TotalTokens > 0:
		fmt.Fprintf(t.invocation.Out, "(%d tokens)\n", usage.TotalTokens)
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
			fmt.Fprintln(t.invocation.Out, printable(model.ID))
		} else if model.ID == name {
			t.chat.Model = name
			fmt.Fprintf(t.invocation.Out, "Chat with %s.\n", printable(name))
			return nil
		}
	}
	if name != "" {
		fmt.Fprintf(t.invocation.Out, "There is no chat model %s.\n", printable(name))
	}
	return nil
}

// report prints an error, except errors that end the conversation, which it returns.
func (t *talk) report(err error) error {
	if err == nil || errors.Is(err, context.Canceled) {
		return err
	}
	t.invocation.Report(err)
	return nil
}

type lineReader struct {
	input    *os.File
	terminal *term.Terminal
}

// read returns the next line. Several lines pasted together are read as one. The terminal is in raw mode until read
// returns. If the context ends first, the pending read from the terminal stays blocked until the program exits.
//
// Errors: io.EOF for Ctrl-C and Ctrl-D; the context's error.
func (l *lineReader) read(ctx context.Context) (string, error) {
	descriptor := int(l.input.Fd())
	state, err := term.MakeRaw(descriptor)
	if err != nil {
		return "", err
	}
	defer func() { _ = term.Restore(descriptor, state) }()
	if width, height, err := term.GetSize(descriptor); err == nil && width > 0 {
		_ = l.terminal.SetSize(width, height) // a wrong size only affects the display
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
