package command

import (
	"strings"

	"github.com/alecthomas/kong"
	kongcompletion "github.com/jotaen/kong-completion"
	"github.com/posener/complete"
)

type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (Completion) Help() string {
	return `Bash: echo 'source <(cutroom completion bash)' >> ~/.bashrc

Zsh: echo 'source <(cutroom completion zsh)' >> ~/.zshrc

Fish: cutroom completion fish > ~/.config/fish/completions/cutroom.fish`
}

func (c *Completion) Run(ctx *kong.Context) error {
	return (&kongcompletion.Completion{Shell: c.Shell, Code: true}).Run(ctx)
}

// Complete responds to a shell's completion request, and reports whether there was one. Model names
// come from the local catalog, because asking a server for each completion would be slow.
func (s *Invocation) Complete(parser *kong.Kong) bool {
	if s.Getenv("COMP_LINE") == "" {
		return false
	}
	kongcompletion.Register(parser, kongcompletion.WithPredictors(map[string]complete.Predictor{
		"file":   complete.PredictFiles("*"),
		"dir":    complete.PredictDirs("*"),
		"status": complete.PredictSet("pending", "processing", "completed", "failed", "cancelled"),
		"model":  complete.PredictFunc(s.modelNames),
	}))
	return true
}

func (s *Invocation) modelNames(line complete.Args) []string {
	known, err := s.catalog()
	if err != nil {
		return nil
	}
	var names []string
	for _, m := range known.Models() {
		for _, name := range append([]string{m.ID}, m.Aliases...) {
			if strings.HasPrefix(name, line.Last) {
				names = append(names, name)
			}
		}
	}
	return names
}
