package api

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/fault"
	"cutroom/shared/domain/file"
	"cutroom/shared/domain/job"
	"cutroom/shared/domain/media"
	"cutroom/shared/domain/media/sniff"
	"cutroom/shared/service/gateway/apierror"
)

const (
	// maxOpenAIJSON is the maximum size of a JSON body, in bytes. JSON bodies are held in memory.
	maxOpenAIJSON = 8 << 20
	jsonWait      = 5 * time.Second // how long a large JSON body waits for its turn
	// maxImages limits OpenAI's parameter n.
	maxImages = 4
	// maxAskedSide is the maximum width and height that a client may request, in pixels.
	maxAskedSide = 16384
)

const (
	maskField   = "mask"
	videoField  = "video"
	sizeField   = "size"
	orientation = "orientation"
)

// openAIRequest reads a request of OpenAI's image and video routes.
type openAIRequest struct {
	service *service
	c       *call
	route   catalog.Route
	// edits means that the first model that edits videos is the default.
	edits bool
	// source is the video job whose result is edited, or nil.
	source *job.Job

	sent submission
	// targets maps each file's key in the submission to a field of the model's form.
	targets map[string]string
	// counts is the number of files per parameter.
	counts map[string]int
	imageFormat
}

func (o *openAIRequest) read(ctx context.Context, r *http.Request, b *body, in *inputs) (*catalog.Form, submission, error) {
	o.targets, o.counts = map[string]string{}, map[string]int{}
	take := func(p filePart) (*job.Input, *problem, error) { return o.take(ctx, in, p) }
	kind, parameters, err := contentType(r)
	switch {
	case err == nil && kind == "multipart/form-data" && parameters["boundary"] != "":
		o.sent, err = readMultipart(b, parameters["boundary"], o.find, take)
	case err == nil && kind == "application/json":
		err = o.readJSON(ctx, r, b, in, take)
	default:
		err = problems{bodyProblem("The body must be multipart/form-data with a boundary, or application/json.")}
	}
	if err != nil {
		return nil, nil, err
	}
	return o.translate(ctx, in)
}

// find is a [findField]. Each file gets a different key, which no text can have: "image", "image[1]" and so on.
func (o *openAIRequest) find(name string) (*catalog.Field, bool) {
	base, isFile := fileParameter(name)
	if !isFile {
		return &catalog.Field{Name: name, Type: catalog.Text}, !strings.HasSuffix(name, "[]") // ignore lists
	}
	key := base
	if n := o.counts[base]; n > 0 {
		key += "[" + strconv.Itoa(n) + "]"
	}
	o.counts[base]++
	return &catalog.Field{Name: key, Type: catalog.AnyFile}, true
}

// fileParameter reports whether a parameter contains files, and returns its name without suffixes such as [] and [0],
// which members of lists and objects have. It returns "image" for images.
func fileParameter(name string) (base string, isFile bool) {
	switch base, _, _ = strings.Cut(name, "["); base {
	case "images":
		return "image", true
	case "image", maskField, "input_reference", videoField:
		return base, true
	}
	return "", false
}

func (o *openAIRequest) take(ctx context.Context, in *inputs, p filePart) (*job.Input, *problem, error) {
	key := p.field.Name
	if p.name == videoField+"[id]" {
		return nil, nil, o.findSource(ctx, p.content)
	}
	name, isURL := strings.CutSuffix(p.name, "[image_url]")
	p.name, _, _ = strings.Cut(name, "[")
	if isURL {
		return in.takeURL(ctx, p, func(p filePart) (*job.Input, *problem, error) { return o.takeFile(ctx, in, key, p) })
	}
	return o.takeFile(ctx, in, key, p)
}

func (o *openAIRequest) findSource(ctx context.Context, content io.Reader) error {
	if o.source != nil {
		return problems{valueProblem("video", nil, "Send only one video.")}
	}
	id, err := io.ReadAll(io.LimitReader(content, maxURL))
	if err != nil {
		return err
	}
	j, err := o.service.video(ctx, *o.c, string(id))
	o.source = &j
	return err
}

func (o *openAIRequest) takeFile(ctx context.Context, in *inputs, key string, p filePart) (*job.Input, *problem, error) {
	target := catalog.Field{Name: catalog.ReferenceField, Type: catalog.ImageFile}
	switch {
	case key == maskField:
		target.Name = maskField
	case o.route == catalog.Videos:
		head := bufio.NewReaderSize(p.content, max(media.SniffLen, file.MaxReference+1))
		p.content = head
		if !showsImage(ctx, in, head) {
			target = catalog.Field{Name: catalog.DataField, Type: catalog.VideoFile}
		}
	case key == "image":
		target.Name = catalog.DataField
	case key != "image[1]":
		wrong := valueProblem(p.name, nil, "Send the image to edit, and at most one image that shows the desired result.")
		return nil, &wrong, nil
	}
	if slices.Contains(slices.Collect(maps.Values(o.targets)), target.Name) {
		wrong := valueProblem(p.name, nil, fmt.Sprintf("The parameter was sent twice with a file of the type %s.", target.Type))
		return nil, &wrong, nil
	}
	o.targets[key] = target.Name
	p.field = &target
	return in.take(ctx, p)
}

// showsImage reports whether a file is an image. If the content is a stored file's id, it uses the recorded type.
func showsImage(ctx context.Context, in *inputs, content *bufio.Reader) bool {
	head, err := content.Peek(content.Size()) // in.take reports the error
	if err == io.EOF && file.IsReference(string(head)) {
		stored, err := in.service.Files.Get(ctx, in.account, string(head))
		return err == nil && strings.HasPrefix(stored.MIME, "image/")
	}
	kind, _ := sniff.Media(head)
	return kind.Image
}

// dataURL returns the decoded content of a base64 data URL (RFC 2397).
func dataURL(text io.Reader, name string) (content io.Reader, ok bool) {
	const maxHead = 256
	source := bufio.NewReaderSize(text, maxHead)
	head, _ := source.Peek(maxHead)
	head, _, found := bytes.Cut(head, []byte(","))
	if !found || !bytes.HasPrefix(head, []byte("data:")) || !bytes.HasSuffix(head, []byte(";base64")) {
		return nil, false
	}
	_, _ = source.Discard(len(head) + 1)
	return base64Reader{base64.NewDecoder(base64.StdEncoding, source), name}, true
}

// base64Reader reports invalid base64 as a problem with the named parameter.
type base64Reader struct {
	io.Reader
	name string
}

func (b base64Reader) Read(p []byte) (int, error) {
	n, err := b.Reader.Read(p)
	var corrupt base64.CorruptInputError
	if errors.As(err, &corrupt) || errors.Is(err, io.ErrUnexpectedEOF) {
		err = problems{valueProblem(b.name, nil, "The data: URL has invalid base64.")}
	}
	return n, err
}

// readJSON reads a JSON body, in which files are data URLs or ids of stored files.
func (o *openAIRequest) readJSON(ctx context.Context, r *http.Request, b *body, in *inputs, take takeFile) error {
	o.sent = submission{}
	return o.service.eachMember(ctx, r, b, in, func(name string, value json.RawMessage) error {
		if _, isFile := fileParameter(name); isFile {
			return o.addFiles(name, value, take)
		}
		return o.addText(name, value)
	})
}

// eachMember reads a JSON object, which may contain files, and calls the function add for each member that is not null.
func (s *service) eachMember(
	ctx context.Context, r *http.Request, b *body, in *inputs, add func(name string, value json.RawMessage) error,
) error {
	isLarge := r.ContentLength < 0 || r.ContentLength > maxJSON || r.Header.Get("Content-Encoding") != ""
	if isLarge && r.ContentLength <= maxOpenAIJSON {
		arrived, err := spool(s.Scratch, in.upload.Reader(ctx, b))
		if err != nil {
			return err
		}
		defer arrived.Close()
		r.Body = arrived
		waiting, cancel := context.WithTimeout(ctx, jsonWait)
		defer cancel()
		if !s.jsonTurns.Take(waiting, in.account) {
			return fault.New(fault.Limited, "Too many large JSON bodies are being read. Send files as multipart/form-data.")
		}
		defer s.jsonTurns.Release(in.account)
		in.noURLs = true // a slow server would hold the turn
	}
	object, err := readLongJSON(r, maxOpenAIJSON, " Send large files as multipart/form-data.")
	if err != nil {
		return err
	}
	for _, name := range slices.Sorted(maps.Keys(object)) {
		if value := object.member(name); value != nil {
			if err := add(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// spool stores a large JSON body in an unnamed file until it is complete, so that slow clients use neither memory nor
// turns.
func spool(folder string, source io.Reader) (*os.File, error) {
	arrived, err := unnamed(folder)
	if err != nil {
		return nil, err
	}
	if _, err = io.Copy(arrived, io.LimitReader(source, maxOpenAIJSON+1)); err == nil {
		_, err = arrived.Seek(0, io.SeekStart)
	}
	if err != nil {
		arrived.Close()
		return nil, err
	}
	return arrived, nil
}

func (o *openAIRequest) addText(name string, value json.RawMessage) error {
	text := string(value)
	if json.Unmarshal(value, &text) != nil &&
		slices.Contains([]string{"prompt", "model", sizeField, "response_format", "output_format", webhookField}, name) {
		return problems{notText(name, nil)}
	}
	field := catalog.Field{Name: name}
	if text = shorten(text); !isAbsent(&field, text) {
		o.sent.begin(&field, name).text = text
	}
	return nil
}

// maxListedFiles limits a list of files, because each file needs a query.
const maxListedFiles = 16

// addFiles takes a file or a list of files. A file is an object, or a string with a data URL or an id.
func (o *openAIRequest) addFiles(name string, value json.RawMessage, take takeFile) error {
	values := []json.RawMessage{value}
	if value[0] == '[' {
		_ = json.Unmarshal(value, &values)
	}
	if len(values) > maxListedFiles {
		return problems{valueProblem(name, nil, fmt.Sprintf("The list has more than %d files.", maxListedFiles))}
	}
	for _, value := range values {
		var one struct {
			URL   string `json:"image_url"`
			ID    string `json:"file_id"`
			Video string `json:"id"`
		}
		if json.Unmarshal(value, &one.URL) != nil && json.Unmarshal(value, &one) != nil || cmp.Or(one.URL, one.ID, one.Video) == "" {
			return problems{valueProblem(name, nil, "Send an object with image_url or file_id.")}
		}
		field, _ := o.find(name)
		part := filePart{field: field, name: name, content: strings.NewReader(cmp.Or(one.ID, one.URL, one.Video))}
		switch {
		case one.ID != "" || file.IsReference(one.URL):
		case one.URL != "":
			part.name += "[image_url]"
		default:
			part.name += "[id]"
		}
		input, wrong, err := take(part)
		if wrong != nil {
			err = problems{*wrong}
		}
		if err != nil {
			return err
		}
		o.sent.begin(field, name).input = input
	}
	return nil
}

// translate finds the model and converts the parameters to the fields of its form.
func (o *openAIRequest) translate(ctx context.Context, in *inputs) (*catalog.Form, submission, error) {
	model := o.sent["model"]
	var kind catalog.Kind
	switch {
	case o.source != nil:
		model = &sent{text: o.source.Model}
	case model != nil:
	case o.edits:
		kind = catalog.Edit
	case o.targets["input_reference"] == catalog.ReferenceField:
		kind = catalog.ImageToVideo
	}
	if m, ok := o.service.Catalog.First(kind); ok {
		model = &sent{text: m.ID}
	}
	if model == nil {
		return nil, nil, problems{missing("model")}
	}
	for _, name := range slices.Sorted(maps.Keys(o.sent)) {
		if found := o.sent[name].problems; len(found) > 0 {
			return nil, nil, found
		}
	}
	m, known := o.service.Catalog.Find(model.text)
	_, chats := o.service.Catalog.Inference(model.text)
	switch {
	case !known && !chats:
		return nil, nil, apierror.UnknownModel("%s", catalog.UnknownModel(model.text).Message)
	case !known || !slices.Contains(m.Capabilities(), o.route):
		return nil, nil, apierror.UnknownModel("The model %s does not have the route /v1/%s. GET /v1/models lists the routes of each model.",
			model.text, o.route)
	}
	o.c.model = m
	if err := o.service.checkModel(o.c.who, m.ID); err != nil {
		return nil, nil, err
	}
	form, sub := jobForm(m), submission{}
	for key, s := range o.sent {
		name := key
		if target, isFile := o.targets[key]; isFile {
			name = target
			switch {
			case m.Kind != catalog.ImageToVideo:
			case target == catalog.ReferenceField:
				name, in.size = catalog.DataField, in.referenceSize
			default:
				name = "" // the model takes no video
			}
		}
		field, known := form.Field(name)
		switch isFile := s.input != nil; {
		case known && field.Type.IsFile() == isFile:
			sub[field.Name] = s
		case isFile && name == maskField:
			return nil, nil, problems{valueProblem(s.name, nil, fmt.Sprintf(
				"The model %s does not take masks. Describe in the prompt which part to edit.", m.ID))}
		case isFile:
			return nil, nil, problems{valueProblem(s.name, nil, fmt.Sprintf("The model %s does not take this file.", m.ID))}
		}
	}
	if o.source != nil {
		if err := o.takeResult(ctx, form, sub, in); err != nil {
			return nil, nil, err
		}
	}
	return form, sub, o.readOptions(m, form, sub, in)
}

// takeResult makes the result of the source the input. Options that the request does not set come from the source.
func (o *openAIRequest) takeResult(ctx context.Context, form *catalog.Form, sub submission, in *inputs) error {
	j := o.source
	if sub[promptField] == nil {
		return problems{missing(promptField)}
	}
	field, edits := form.Field(catalog.DataField)
	if !edits || field.Type != catalog.VideoFile || sub[field.Name] != nil {
		return problems{valueProblem(videoField, nil, fmt.Sprintf("The model %s cannot edit the video, or two videos were sent.", j.Model))}
	}
	if err := o.service.Jobs.CheckResult(*j); err != nil {
		return err
	}
	for name, value := range j.Request.EngineOptions() {
		if sub[name] == nil {
			sub[name] = &sent{name: name, text: fmt.Sprint(value)}
		}
	}
	input := &job.Input{
		Blob: o.service.Jobs.InputBlob(in.jobID, field.Name), MIME: j.Result.MIME, Size: j.Result.Size,
		File: j.Result.Blob, Reference: j.ID,
	}
	sub[field.Name] = &sent{name: videoField, input: input}
	unknown := valueProblem(videoField, j.ID, "The video was deleted.")
	in.references = append(in.references, fileReference{input.File, input.Blob, unknown})
	wrong, err := in.check(ctx, field, videoField, j.ID, input)
	if fault.Is(err, fault.NotFound) {
		wrong = &unknown
	}
	if wrong != nil {
		err = problems{*wrong}
	}
	return err
}

// readOptions reads the parameters that are not fields of forms. Parameters without a counterpart are ignored.
func (o *openAIRequest) readOptions(m *catalog.Model, form *catalog.Form, sub submission, in *inputs) error {
	one, most, percent := int64(1), int64(maxImages), int64(100)
	o.quality = 100
	fields := []catalog.Field{{Name: "seconds", Type: catalog.Text}}
	if o.route != catalog.Videos {
		fields = []catalog.Field{
			{Name: "n", Type: catalog.Integer, Min: &one, Max: &most},
			{Name: "response_format", Type: catalog.Choice, Values: []string{"b64_json", "url"}},
			{Name: "output_format", Type: catalog.Choice, Values: []string{"png", "jpeg"}},
			{Name: "output_compression", Type: catalog.Integer, Min: &one, Max: &percent},
			{Name: "stream", Type: catalog.Boolean},
		}
	}
	for i := range fields {
		field := &fields[i]
		s := o.sent[field.Name]
		if s == nil {
			continue
		}
		value, wrong := parse(field, s)
		if wrong != nil {
			return problems{*wrong}
		}
		switch field.Name {
		case "n":
			in.copies = int(value.(int64)) - 1
		case "response_format":
			o.urls = value == "url"
		case "output_format":
			o.jpeg = value == "jpeg"
		case "output_compression":
			o.quality = int(value.(int64))
		case "stream":
			o.stream = value == true
		case "seconds":
			if n, err := strconv.ParseFloat(s.text, 64); err != nil || !(n > 0 && n <= 3600) {
				return problems{valueProblem("seconds", nil, "The length must be a number of seconds, such as \"4\".")}
			}
		}
	}
	for _, size := range m.Sizes {
		if o.jpeg && (o.urls || size.Width*size.Height > maxJPEG) {
			return problems{valueProblem("output_format", nil, "Links, and models with images above 16 megapixels, support only png.")}
		}
	}
	return o.setSize(m, form, sub)
}

var sizeForm = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^([1-9][0-9]{0,4})x([1-9][0-9]{0,4})$`) })

// setSize chooses the orientation, and the resolution whose area is nearest to the requested size. It does not
// override fields that the request sets.
func (o *openAIRequest) setSize(m *catalog.Model, form *catalog.Form, sub submission) error {
	s := o.sent[sizeField]
	if s == nil || s.text == "auto" {
		return nil
	}
	match := sizeForm().FindStringSubmatch(s.text)
	if match == nil {
		return problems{valueProblem(sizeField, nil, "The size must be \"auto\", or width and height in pixels, such as \"1280x720\".")}
	}
	width, _ := strconv.Atoi(match[1])
	height, _ := strconv.Atoi(match[2])
	if width > maxAskedSide || height > maxAskedSide {
		return problems{valueProblem(sizeField, nil, fmt.Sprintf("The sides must be at most %d pixels.", maxAskedSide))}
	}
	field, _ := form.Field(catalog.ResolutionField)
	nearest, least := "", 0
	for _, name := range field.Values {
		box := m.Sizes[name]
		distance := box.Width*box.Height - width*height
		if distance = max(distance, -distance); name != catalog.SourceResolution && (nearest == "" || distance < least) {
			nearest, least = name, distance
		}
	}
	if sub[catalog.ResolutionField] == nil && nearest != "" {
		sub[catalog.ResolutionField] = &sent{name: sizeField, text: nearest}
	}
	if _, known := form.Field(orientation); known && sub[orientation] == nil {
		text := "landscape"
		if height > width {
			text = "portrait"
		}
		sub[orientation] = &sent{name: sizeField, text: text}
	}
	return nil
}
