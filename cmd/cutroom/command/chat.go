package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"cutroom/shared/client"
)

type Chat struct {
	Text        []string `arg:"" optional:"" help:"Message. Default: read from stdin; on a terminal, chat in turns."`
	Model       string   `short:"m" placeholder:"MODEL" help:"Model of the inference gateway. Default: the first chat model."`
	System      string   `placeholder:"TEXT" help:"System prompt for the model."`
	MaxTokens   int      `placeholder:"N" help:"Maximum length of a reply in tokens."`
	Temperature *float64 `placeholder:"T" help:"Sampling temperature, 0 to 2."`
}

// maxPrompt is the maximum size of a prompt from stdin, in bytes. No model accepts more.
const maxPrompt = 16 << 20

func (c *Chat) Run(ctx context.Context, s *Invocation) error {
	text := strings.Join(c.Text, " ")
	if text == "" {
		if s.isTerminal(s.In) && s.isTerminal(s.Out) && !s.JSON {
			return c.converse(ctx, s)
		}
		read, err := io.ReadAll(io.LimitReader(s.In, maxPrompt))
		if err != nil {
			return err
		}
		if text = strings.TrimSpace(string(read)); text == "" {
			return &UsageError{"no message: pass a text, or send it to stdin"}
		}
	}
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		chat, err := c.begin(ctx, service)
		if err != nil {
			return err
		}
		chat.Messages = append(chat.Messages, client.Message{Role: "user", Content: text})
		if s.JSON {
			answer, err := service.Complete(ctx, chat)
			if err != nil {
				return err
			}
			return s.Print(answer)
		}
		_, _, err = s.answer(ctx, service, chat)
		return err
	})
}

func (c *Chat) begin(ctx context.Context, service *client.Client) (client.Chat, error) {
	chat := client.Chat{Model: c.Model, MaxTokens: c.MaxTokens, Temperature: c.Temperature}
	if c.System != "" {
		chat.Messages = []client.Message{{Role: "system", Content: c.System}}
	}
	if chat.Model != "" {
		return chat, nil
	}
	models, err := service.InferenceModels(ctx)
	if err != nil {
		return chat, err
	}
	for _, model := range models {
		if model.Chats() {
			chat.Model = model.ID
			return chat, nil
		}
	}
	return chat, errors.New("the gateway has no chat model: add one to the catalog")
}

// answer prints a reply as it arrives and returns it with the token counts. If the stream breaks
// off, it returns the part that arrived.
func (s *Invocation) answer(ctx context.Context, service *client.Client,
	chat client.Chat) (string, client.ChatUsage, error) {
	var said strings.Builder
	clean := func(text string) string { return text }
	if s.isTerminal(s.Out) {
		clean = harmless
	}
	usage, err := service.Stream(ctx, chat, func(text string) error {
		said.WriteString(text)
		_, err := io.WriteString(s.Out, clean(text))
		return err
	})
	if said.Len() > 0 && !strings.HasSuffix(said.String(), "\n") {
		fmt.Fprintln(s.Out)
	}
	return said.String(), usage, err
}

// harmless removes terminal control characters from a model's text.
func harmless(text string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' && r != '\n' && r != '\t' || r >= 0x7f && r < 0xa0 {
			return -1
		}
		return r
	}, text)
}
