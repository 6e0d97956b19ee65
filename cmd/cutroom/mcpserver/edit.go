package mcpserver

import (
	"context"
	"encoding/json"
	"errors"
	"regexp"
	"strconv"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"

	"cutroom/shared/client"
	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/media"
)

const maxSeed = 1<<32 - 1

type editInput struct {
	Input      string `json:"input" jsonschema:"Video or picture to edit: a path in the allowed folder, or the id of a stored file (file_…)."`
	Prompt     string `json:"prompt,omitempty" jsonschema:"What to change, in the user's words."`
	Reference  string `json:"reference,omitempty" jsonschema:"Picture of what the edit should look like, or of the garment to try on: a path or a file id."`
	Model      string `json:"model,omitempty" jsonschema:"Id or alias of a media model of list_models. Default: the latest of the input's kind."`
	Seed       *int64 `json:"seed,omitempty" jsonschema:"The same request with the same seed gives the same result. Default: random."`
	Resolution string `json:"resolution,omitempty" jsonschema:"Size of the result, such as 720p, one of the model's sizes."`
}

type generateInput struct {
	Prompt      string `json:"prompt" jsonschema:"What the video should show, in the user's words."`
	Image       string `json:"image,omitempty" jsonschema:"Picture that the video starts with: a path in the allowed folder, or the id of a stored file (file_…). Omit it to make a video from text only."`
	LastImage   string `json:"last_image,omitempty" jsonschema:"Picture that the video ends with. Only with image."`
	Model       string `json:"model,omitempty" jsonschema:"Id or alias of a model of list_models of the kind text-to-video, or with image image-to-video. Default: the latest."`
	Seed        *int64 `json:"seed,omitempty" jsonschema:"The same request with the same seed gives the same result. Default: random."`
	Resolution  string `json:"resolution,omitempty" jsonschema:"Size of the result, such as 720p, one of the model's sizes."`
	Orientation string `json:"orientation,omitempty" jsonschema:"Which side is the longer one."`
}

// jobOutput is a job and the agent's next step.
type jobOutput struct {
	Job  map[string]any `json:"job" jsonschema:"The job's record."`
	Next string         `json:"next" jsonschema:"What to do with it."`
}

func jobOf(job client.Job) (jobOutput, error) {
	out := jobOutput{Next: "Call get_job to wait for it."}
	switch job.Status {
	case client.Completed:
		out.Next = "Call fetch to write its result into the folder."
	case client.Failed:
		out.Next = "It failed and has no result; job.error gives the reason."
	}
	err := json.Unmarshal(job.Raw, &out.Job)
	return out, err
}

func (t tools) addEdits(server *mcp.Server) {
	seed := func(properties map[string]*jsonschema.Schema) {
		property := properties["seed"]
		property.Type, property.Types = "integer", nil
		within(property, 0, maxSeed, nil)
	}
	add(t, server, &mcp.Tool{
		Name: "edit",
		Description: "Start an edit of a video or picture from a prompt. The input is uploaded to the user's own Cutroom. " +
			"Returns the job immediately; get_job waits for it.",
		InputSchema: input[editInput](seed), Annotations: makes("Edit a video or a picture", false),
	}, t.edit)
	add(t, server, &mcp.Tool{
		Name:        "generate",
		Description: "Start making a video from text, or from a picture. Returns the job immediately; get_job waits for it.",
		InputSchema: input[generateInput](func(properties map[string]*jsonschema.Schema) {
			seed(properties)
			oneOf(properties["orientation"], "landscape", "portrait")
		}),
		Annotations: makes("Make a video", false),
	}, t.generate)
}

func (t tools) edit(ctx context.Context, c *call, in editInput) (jobOutput, error) {
	if in.Prompt == "" && in.Reference == "" {
		return jobOutput{}, errors.New("a prompt, a reference picture, or both are required")
	}
	data, kind, err := t.source(ctx, c, in.Input)
	if err != nil {
		return jobOutput{}, err
	}
	edit := client.Edit{Data: &data, Fields: fields(map[string]string{
		"prompt": in.Prompt, "resolution": in.Resolution,
	}, in.Seed)}
	if in.Reference != "" {
		reference, _, err := t.source(ctx, c, in.Reference)
		if err != nil {
			return jobOutput{}, err
		}
		edit.Reference = &reference
	}
	latest := catalog.Edit
	if kind.Image && !kind.Video {
		latest = catalog.Image
	}
	return t.submit(ctx, c, edit, in.Model, latest)
}

func (t tools) generate(ctx context.Context, c *call, in generateInput) (jobOutput, error) {
	edit := client.Edit{Fields: fields(map[string]string{
		"prompt": in.Prompt, "resolution": in.Resolution, "orientation": in.Orientation,
	}, in.Seed)}
	if in.Image == "" {
		return t.submit(ctx, c, edit, in.Model, catalog.TextToVideo)
	}
	data, _, err := t.source(ctx, c, in.Image)
	if err != nil {
		return jobOutput{}, err
	}
	edit.Data = &data
	if in.LastImage != "" {
		last, _, err := t.source(ctx, c, in.LastImage)
		if err != nil {
			return jobOutput{}, err
		}
		edit.Reference = &last
	}
	return t.submit(ctx, c, edit, in.Model, catalog.ImageToVideo)
}

func (t tools) submit(ctx context.Context, c *call, edit client.Edit, model string, kind catalog.Kind) (jobOutput,
	error) {
	if model == "" {
		var err error
		if model, err = t.Latest(kind); err != nil {
			return jobOutput{}, err
		}
	}
	id, err := c.ResolveModel(ctx, model)
	if err != nil {
		return jobOutput{}, err
	}
	edit.Model = id
	job, err := c.CreateJob(ctx, edit, c.progress.sending(ctx))
	if err != nil {
		return jobOutput{}, err
	}
	return jobOf(job)
}

func fields(texts map[string]string, seed *int64) map[string]string {
	set := map[string]string{}
	for name, text := range texts {
		if text != "" {
			set[name] = text
		}
	}
	if seed != nil {
		set["seed"] = strconv.FormatInt(*seed, 10)
	}
	return set
}

var fileID = regexp.MustCompile(`^file_[0-9A-Za-z]{1,64}$`)

// source returns a file from the folder, or a stored file, with its type.
func (t tools) source(ctx context.Context, c *call, input string) (client.Source, media.Type, error) {
	if !fileID.MatchString(input) {
		return t.Folder.source(input)
	}
	file, err := c.File(ctx, input)
	if err != nil {
		return client.Source{}, media.Type{}, err
	}
	kind, _ := media.Find(file.MIMEType) // the service rejects unknown types
	return client.Source{Reference: input}, kind, nil
}
