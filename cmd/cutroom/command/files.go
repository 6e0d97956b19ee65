package command

import (
	"context"
	"path/filepath"

	"cutroom/shared/client"
)

type Files struct {
	List FilesList `cmd:"" name:"ls" aliases:"list" default:"withargs" help:"List stored files, newest first."`
	Put  FilesPut  `cmd:"" help:"Store files and print their ids."`
	Get  FilesGet  `cmd:"" help:"Show a stored file's reference, or download the file."`
	Rm   FilesRm   `cmd:"" help:"Delete stored files."`
}

type FilesList struct {
	Limit int `default:"100" placeholder:"N" help:"Maximum number (${default})."`
}

func (c *FilesList) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		list := s.newList("FILE", "NAME", "TYPE", "SIZE", "EXPIRES")
		for file, err := range service.Files(ctx, c.Limit) {
			if err != nil {
				return err
			}
			if err := list.add(file.Raw, file.ID, file.Filename, file.MIMEType, size(file.SizeBytes),
				local(file.ExpiresAt)); err != nil {
				return err
			}
		}
		return list.end()
	})
}

type FilesPut struct {
	Paths []string `arg:"" predictor:"file" help:"Files to store."`
	TTL   string   `name:"ttl" placeholder:"SECONDS" help:"Time to keep the files, 60 to 2592000, or persistent. Default: a day."`
}

func (c *FilesPut) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		for _, path := range c.Paths {
			if err := c.put(ctx, s, service, path); err != nil {
				return err
			}
		}
		return nil
	})
}

func (c *FilesPut) put(ctx context.Context, s *Invocation, service *client.Client, path string) error {
	file, err := client.File(path)
	if err != nil {
		return err
	}
	display := s.newDisplay(true)
	tracker := display.track(filepath.Base(path))
	stored, err := service.PutFile(ctx, file, c.TTL, tracker.uploading)
	tracker.end(err)
	display.end()
	if err != nil {
		return err
	}
	if s.JSON {
		return s.Print(stored.Raw)
	}
	return s.printLine(stored.ID)
}

type FilesGet struct {
	ID     string `arg:"" help:"Id of the file."`
	Output string `short:"o" predictor:"file" placeholder:"PATH" help:"Path for the content; - is stdout."`
	Force  bool   `short:"f" help:"Replace an existing file."`
}

func (c *FilesGet) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		if c.Output != "" {
			return c.fetch(ctx, s, service)
		}
		file, err := service.File(ctx, c.ID)
		if err != nil {
			return err
		}
		if s.JSON {
			return s.Print(file.Raw)
		}
		list := s.newList("FILE", file.ID)
		for _, row := range [][]string{
			{"name", file.Filename}, {"type", file.MIMEType}, {"size", size(file.SizeBytes)}, {"md5", file.MD5},
			{"created", local(&file.CreatedAt)}, {"expires", local(file.ExpiresAt)},
		} {
			if err := list.row(row); err != nil {
				return err
			}
		}
		return list.end()
	})
}

func (c *FilesGet) fetch(ctx context.Context, s *Invocation, service *client.Client) error {
	e := &editor{invocation: s, client: service, order: order{Output: c.Output, Force: c.Force}}
	return e.download(map[string]string{"id": c.ID, "output": c.Output}, func(tracker *tracker) error {
		if c.Output == "-" {
			return service.CopyFile(ctx, c.ID, s.Out, tracker.downloading)
		}
		return service.DownloadFile(ctx, c.ID, c.Output, tracker.downloading)
	})
}

type FilesRm struct {
	IDs []string `arg:"" name:"id" help:"Ids of the files."`
}

func (c *FilesRm) Run(ctx context.Context, s *Invocation) error {
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		for _, id := range c.IDs {
			if err := service.DeleteFile(ctx, id); err != nil {
				return err
			}
			if s.JSON {
				if err := s.Print(map[string]string{"id": id, "status": "deleted"}); err != nil {
					return err
				}
			}
		}
		return nil
	})
}
