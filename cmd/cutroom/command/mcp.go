package command

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"

	"cutroom/cmd/cutroom/mcpserver"
	"cutroom/shared/client"
)

type MCP struct {
	Folder string `default:"." predictor:"dir" placeholder:"FOLDER" help:"Folder in which the agent may read and write files; by default the current folder."`
}

func (MCP) Help() string {
	return "It speaks the Model Context Protocol on stdin and stdout, and is meant to be started by an agent. It uses " +
		"the same server and key as the other commands."
}

// Run serves until stdin closes or the context ends.
func (c *MCP) Run(ctx context.Context, s *Invocation) error {
	folder, err := mcpserver.OpenFolder(c.Folder)
	if err != nil {
		return &UsageError{fmt.Sprintf("--folder: %v", err)}
	}
	defer folder.Close()
	mask := &mcpserver.Mask{}
	s.Err = mask.Writer(s.Err)
	err = mcpserver.Serve(ctx, mcpserver.Config{
		Connect: func() (*client.Client, error) {
			used, err := s.Server()
			if err != nil {
				return nil, err
			}
			mask.Hide(used.Key)
			return s.Client()
		},
		Latest: s.latest, Folder: folder, NewID: rand.Text, Version: s.Version,
	}, s.In, mask.Writer(s.Out))
	if errors.Is(err, context.Canceled) {
		return nil // the parent process stopped this server
	}
	return err
}
