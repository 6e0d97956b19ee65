package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"

	"cutroom/shared/domain/origin"
	c2palib "cutroom/shared/platform/c2pa"
	"cutroom/shared/platform/sandbox"
	"cutroom/shared/service/c2pa"
)

type Inspect struct {
	File    string `arg:"" type:"existingfile" help:"Picture or video."`
	Trust   string `type:"existingfile" placeholder:"FILE" help:"Certificates in PEM of the authorities to trust."`
	Library string `env:"CUTROOM_C2PA_LIBRARY" placeholder:"FILE" help:"Library libc2pa_c; by default next to this program or from the system (${env})."`
}

func (Inspect) Help() string {
	return "It runs on this machine without a server. The exit code is 0 if the file is unchanged since it was signed, " +
		"and 1 if it has no Content Credentials, was changed, or the credentials cannot be trusted."
}

// errInvalid reports invalid Content Credentials. They have already been printed.
var errInvalid = errors.New("the Content Credentials are not valid")

func (c *Inspect) Run(ctx context.Context, s *Invocation) error {
	anchors := ""
	if c.Trust != "" {
		text, err := os.ReadFile(c.Trust)
		if err != nil {
			return err
		}
		if anchors, err = c2pa.Anchors(text); err != nil {
			return &UsageError{fmt.Sprintf("--trust: %s: %v", c.Trust, err)}
		}
	}
	// Check the type first, because opening a named pipe would block until a writer opens it.
	if info, err := os.Stat(c.File); err != nil {
		return err
	} else if !info.Mode().IsRegular() {
		return &UsageError{c.File + " is not a regular file. Save its content to a file and inspect that file."}
	}
	file, err := os.Open(c.File)
	if err != nil {
		return err
	}
	defer file.Close()
	box, err := sandbox.New(ctx)
	if err != nil {
		return err
	}
	library, err := c2palib.Find(ctx, box, c.Library)
	if err != nil {
		return fmt.Errorf("%w; put libc2pa_c, from the PyPI package c2pa-python, next to the program", err)
	}
	report, err := c2pa.Inspect(ctx, library, file, anchors)
	switch {
	case errors.Is(err, c2palib.ErrNone):
		return errors.New("the file has no Content Credentials")
	case errors.Is(err, c2palib.ErrLost):
		return errors.New("cannot read the file: the reader crashed, or exceeded its memory or time limit")
	case err != nil:
		return err
	}
	if s.JSON {
		err = s.Print(report)
	} else {
		err = s.showReport(report)
	}
	if err == nil && report.State == origin.Invalid {
		return errInvalid
	}
	return err
}

func (s *Invocation) showReport(report origin.Report) error {
	list := s.newList("CREDENTIALS", report.State)
	rows := recordRows(report.Record)
	for _, problem := range report.Problems {
		rows = append(rows, []string{"problem", problem})
	}
	switch report.State {
	case origin.Trusted:
		rows = append(rows, []string{
			"verified", "picture, sound and credentials unchanged since it was signed; a trusted authority vouches " +
				"for the signer",
		})
	case origin.Valid:
		rows = append(rows, []string{
			"verified", "picture, sound and credentials unchanged since it was signed; no authority confirms the " +
				"signer's name (--trust)",
		})
	}
	for _, row := range rows {
		if err := list.row(row); err != nil {
			return err
		}
	}
	return list.end()
}

func recordRows(record origin.Record) [][]string {
	var rows [][]string
	for _, action := range record.Actions {
		text := strings.TrimPrefix(action.Action, "c2pa.")
		switch {
		case action.ByModel():
			text += " by a trained model (" + action.SourceType + ")"
		case action.SourceType != "":
			text += " (" + action.SourceType + ")"
		}
		for _, part := range [][2]string{{", model ", action.Model}, {", engine ", action.Agent}, {", ", action.When}} {
			if part[1] != "" {
				text += part[0] + part[1]
			}
		}
		rows = append(rows, []string{"what", text})
	}
	signer := record.SignedBy
	if record.CommonName != "" && record.CommonName != signer {
		signer += " (" + record.CommonName + ")"
	}
	rows = append(rows, []string{"signed by", signer}, []string{"written by", record.Generator})
	for _, in := range record.Inputs {
		text := in.Relationship + " " + in.Format
		if in.SHA256 != "" {
			text += ", SHA-256 " + in.SHA256
		}
		rows = append(rows, []string{"made of", text})
		for _, problem := range in.Problems {
			rows = append(rows, []string{"  problem", problem})
		}
		if in.Record == nil {
			continue
		}
		for _, row := range recordRows(*in.Record) {
			rows = append(rows, []string{"  " + row[0], row[1]})
		}
	}
	return rows
}
