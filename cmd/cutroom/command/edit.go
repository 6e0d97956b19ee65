package command

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"cutroom/shared/client"
	"cutroom/shared/domain/catalog"
)

type order struct {
	Model   string `short:"m" predictor:"model" placeholder:"MODEL" help:"Model to use, by id or alias; by default the latest of its kind."`
	Seed    string `placeholder:"N" help:"Seed, 0 to 4294967295: the same request with the same seed gives the same result. Default: random."`
	Enhance bool   `default:"true" negatable:"" help:"Let the service enhance the prompt."`
	Webhook string `placeholder:"URL" help:"URL that is called when the job ends."`
	Output  string `short:"o" predictor:"file" placeholder:"PATH" help:"Path of the result; - is stdout. ${beside}"`
	Force   bool   `short:"f" help:"Replace an existing file."`
	Detach  bool   `help:"Do not wait for the job; print its id."`
}

// fields returns the form fields that the flags set. The service applies the defaults.
func (o order) fields(prompt string) (map[string]string, error) {
	fields := map[string]string{}
	if prompt != "" {
		fields["prompt"] = prompt
	}
	if o.Seed != "" {
		if _, err := strconv.ParseUint(o.Seed, 10, 32); err != nil {
			return nil, &UsageError{fmt.Sprintf("--seed: %q must be an integer from 0 to 4294967295", o.Seed)}
		}
		fields["seed"] = o.Seed
	}
	if !o.Enhance {
		fields["enhance_prompt"] = "false"
	}
	if o.Webhook != "" {
		fields["webhook_url"] = o.Webhook
	}
	return fields, nil
}

type Edit struct {
	order      `set:"beside=Default: in the input's folder, named after the input and the prompt."`
	Inputs     []string `arg:"" predictor:"file" help:"Videos or images to edit: files, a folder, or ids of stored files."`
	Prompt     string   `short:"p" help:"What to change."`
	Reference  string   `name:"ref" predictor:"file" placeholder:"IMAGE" help:"Reference image: a file, or the id of a stored one."`
	Resolution string   `placeholder:"720p" help:"Size of the result, one of the model's sizes."`
	SelfAnchor bool     `default:"true" negatable:"" help:"Use the first edited frame as the anchor for later frames, if the model supports this."`
	Jobs       int      `default:"4" placeholder:"N" help:"Number of concurrent edits of a batch."`
}

func (Edit) Help() string {
	return "Several inputs or a folder form a batch, and -o names the folder for the results. A batch continues after a " +
		"failure, and skips existing results, so you can repeat the command to complete it."
}

func (c *Edit) Run(ctx context.Context, s *Invocation) error { return c.run(ctx, s, "") }

// run performs the edit with the named model, or with the latest model of the given kind. If kind is empty, the type
// of the input decides.
func (c *Edit) run(ctx context.Context, s *Invocation, kind catalog.Kind) error {
	fields, err := c.fields(c.Prompt)
	if err != nil {
		return err
	}
	if c.Resolution != "" {
		fields["resolution"] = c.Resolution
	}
	if !c.SelfAnchor {
		fields["self_anchor"] = "false"
	}
	edit := client.Edit{Model: c.Model, Fields: fields}
	if edit.Model == "" && kind != "" {
		if edit.Model, err = s.latest(kind); err != nil {
			return err
		}
	}
	if c.Reference != "" {
		reference, err := source(c.Reference)
		if err != nil {
			return err
		}
		edit.Reference = &reference
	}
	inputs, batch, err := c.inputs()
	if err != nil {
		return err
	}
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		e := &editor{invocation: s, client: service, order: c.order, makesVideo: kind == catalog.ImageToVideo}
		if batch {
			return e.batch(ctx, edit, inputs, c.Jobs)
		}
		data, err := source(inputs[0])
		if err != nil {
			return err
		}
		edit.Data = &data
		return e.single(ctx, edit, inputs[0])
	})
}

// videoKinds and imageKinds list the file extensions that count as media in an input folder.
var (
	// .ts is missing, because in a folder it is more often TypeScript than video.
	videoKinds = []string{".mp4", ".m4v", ".mov", ".3gp", ".mts", ".m2ts", ".webm", ".mkv", ".avi", ".ogv", ".flv",
		".gif"}
	imageKinds = []string{".png", ".jpg", ".jpeg", ".webp", ".avif", ".bmp", ".tif", ".tiff", ".heic", ".heif"}
)

func isImage(name string) bool {
	return slices.Contains(imageKinds, strings.ToLower(filepath.Ext(name)))
}

func isVideo(name string) bool {
	return slices.Contains(videoKinds, strings.ToLower(filepath.Ext(name)))
}

// inputs returns the inputs and reports whether they form a batch. A folder is replaced by its media files.
func (c *Edit) inputs() (inputs []string, batch bool, err error) {
	batch = len(c.Inputs) > 1
	for _, input := range c.Inputs {
		info, err := os.Stat(input)
		if err != nil || !info.IsDir() {
			inputs = append(inputs, input) // an unreadable input is reported later
			continue
		}
		batch = true
		entries, err := os.ReadDir(input)
		if err != nil {
			return nil, false, err
		}
		for _, entry := range entries {
			if entry.Type().IsRegular() && (isImage(entry.Name()) || isVideo(entry.Name())) {
				inputs = append(inputs, filepath.Join(input, entry.Name()))
			}
		}
		if sameFolder(input, c.Output) {
			return nil, false, &UsageError{
				fmt.Sprintf("-o: the results cannot go to the input folder %s; name another folder", input),
			}
		}
	}
	switch {
	case !batch:
	case c.Output == "" || c.Output == "-":
		return nil, false, &UsageError{"-o: name a folder for the results of the batch"}
	case len(inputs) == 0:
		return nil, false, &UsageError{fmt.Sprintf("%s contains no video or image", strings.Join(c.Inputs, ", "))}
	case c.Detach:
		return nil, false, &UsageError{"--detach works with only one input"}
	case c.Jobs < 1:
		return nil, false, &UsageError{"--jobs must be at least 1"}
	}
	return inputs, batch, nil
}

func sameFolder(a, b string) bool {
	first, errA := os.Stat(a)
	second, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(first, second)
}

func source(input string) (client.Source, error) {
	file, err := client.File(input)
	if err != nil && isFileID(input) {
		return client.Source{Reference: input}, nil
	}
	return file, err
}

func isFileID(text string) bool {
	rest, found := strings.CutPrefix(text, "file_")
	return found && rest != "" && !strings.ContainsAny(rest, `./\`)
}

type Image struct {
	order      `set:"beside=Default: in the input's folder, named after the input and the prompt."`
	Input      string `arg:"" predictor:"file" help:"Image to edit: a file, or the id of a stored file."`
	Prompt     string `short:"p" required:"" help:"What to change."`
	Reference  string `name:"ref" predictor:"file" placeholder:"IMAGE" help:"Reference image: a file, or the id of a stored one."`
	Resolution string `placeholder:"720p" help:"Size of the result: 720p or 480p."`
}

func (c *Image) Run(ctx context.Context, s *Invocation) error {
	return editImage(ctx, s, catalog.Image, Edit{
		order: c.order, Inputs: []string{c.Input}, Prompt: c.Prompt, Reference: c.Reference, Resolution: c.Resolution,
	})
}

func editImage(ctx context.Context, s *Invocation, kind catalog.Kind, edit Edit) error {
	if info, err := os.Stat(edit.Inputs[0]); err == nil && info.IsDir() {
		return &UsageError{"the command takes one image; use \"cutroom edit\" for a folder"}
	}
	edit.SelfAnchor, edit.Jobs = true, 1
	return edit.run(ctx, s, kind)
}

type I2V struct {
	order      `set:"beside=Default: in the image's folder, named after the image and the prompt."`
	Input      string `arg:"" predictor:"file" help:"Image that the video starts with: a file, or the id of a stored file."`
	Prompt     string `short:"p" help:"What should happen in the video."`
	Last       string `predictor:"file" placeholder:"IMAGE" help:"Image that the video ends with: a file, or the id of a stored one."`
	Resolution string `placeholder:"720p" help:"Size of the result: 720p or 480p."`
}

func (c *I2V) Run(ctx context.Context, s *Invocation) error {
	return editImage(ctx, s, catalog.ImageToVideo, Edit{
		order: c.order, Inputs: []string{c.Input}, Prompt: c.Prompt, Reference: c.Last, Resolution: c.Resolution,
	})
}

type T2V struct {
	order       `set:"beside=Default: in this folder, named after the prompt."`
	Prompt      string `arg:"" help:"What the video should show."`
	Resolution  string `placeholder:"720p" help:"Size of the result: 720p or 480p."`
	Orientation string `placeholder:"landscape" help:"Longer side: landscape or portrait."`
}

func (c *T2V) Run(ctx context.Context, s *Invocation) error {
	fields, err := c.fields(c.Prompt)
	if err != nil {
		return err
	}
	for name, value := range map[string]string{"resolution": c.Resolution, "orientation": c.Orientation} {
		if value != "" {
			fields[name] = value
		}
	}
	model := c.Model
	if model == "" {
		if model, err = s.latest(catalog.TextToVideo); err != nil {
			return err
		}
	}
	return s.with(ctx, func(ctx context.Context, service *client.Client) error {
		e := &editor{invocation: s, client: service, order: c.order}
		return e.single(ctx, client.Edit{Model: model, Fields: fields}, "")
	})
}
