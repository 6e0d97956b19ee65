// Package libc2pa calls libc2pa_c, the Content Authenticity Initiative's C2PA library, without cgo.
// A malicious file may compromise the process, so package c2pa calls it in a sandbox.
//
// A process calls it for one task and exits, so it never frees the library's memory.
package libc2pa

import (
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"strings"
	"unsafe"

	"cutroom/shared/platform/dynamic"
)

var (
	ErrNone      = errors.New("libc2pa: the file has no Content Credentials")
	ErrElsewhere = errors.New("libc2pa: the file's Content Credentials are on a server")
)

func Name() string {
	if runtime.GOOS == "darwin" {
		return "libc2pa_c.dylib"
	}
	return "libc2pa_c.so"
}

type Library struct {
	path, version string
	files         []*os.File
	sign          func([]byte) ([]byte, error)

	read, seek, write, flush, signer uintptr

	lastError   func() string
	newStream   func(context uintptr, read, seek, write, flush uintptr) unsafe.Pointer
	newSettings func() unsafe.Pointer
	update      func(settings unsafe.Pointer, text, format string) int32
	newContexts func() unsafe.Pointer
	setSettings func(contexts, settings unsafe.Pointer) int32
	newContext  func(contexts unsafe.Pointer) unsafe.Pointer

	newReader  func(context unsafe.Pointer) unsafe.Pointer
	readStream func(reader unsafe.Pointer, mime string, stream unsafe.Pointer) unsafe.Pointer
	report     func(reader unsafe.Pointer) string

	newBuilder    func(context unsafe.Pointer) unsafe.Pointer
	define        func(builder unsafe.Pointer, manifest string) unsafe.Pointer
	addIngredient func(builder unsafe.Pointer, ingredient, mime string, stream unsafe.Pointer) int32
	newSigner     func(context, sign uintptr, algorithm int32, chain string, authority unsafe.Pointer) unsafe.Pointer
	signStream    func(builder unsafe.Pointer, mime string, from, to, signer, manifest unsafe.Pointer) int64
}

func Load(path string) (*Library, error) {
	handle, err := dynamic.Open(path)
	if err != nil {
		return nil, fmt.Errorf("cannot load %s: %w", path, err)
	}
	l := &Library{path: path}
	var version func() string
	for _, f := range []struct {
		to   any
		name string
	}{
		{&version, "c2pa_version"}, {&l.lastError, "c2pa_error"}, {&l.newStream, "c2pa_create_stream"},
		{&l.newSettings, "c2pa_settings_new"}, {&l.update, "c2pa_settings_update_from_string"},
		{&l.newContexts, "c2pa_context_builder_new"}, {&l.setSettings, "c2pa_context_builder_set_settings"},
		{&l.newContext, "c2pa_context_builder_build"}, {&l.newReader, "c2pa_reader_from_context"},
		{&l.readStream, "c2pa_reader_with_stream"}, {&l.report, "c2pa_reader_json"},
		{&l.newBuilder, "c2pa_builder_from_context"}, {&l.define, "c2pa_builder_with_definition"},
		{&l.addIngredient, "c2pa_builder_add_ingredient_from_stream"}, {&l.newSigner, "c2pa_signer_create"},
		{&l.signStream, "c2pa_builder_sign"},
	} {
		address, err := dynamic.Symbol(handle, f.name)
		if err != nil {
			return nil, fmt.Errorf("%s has no %s: another version is required", path, f.name)
		}
		dynamic.Bind(f.to, address)
	}
	l.version = version()
	l.read, l.seek = dynamic.Callback(l.readFile), dynamic.Callback(l.seekFile)
	l.write, l.flush = dynamic.Callback(l.writeFile), dynamic.Callback(l.flushFile)
	l.signer = dynamic.Callback(l.signBytes)
	return l, nil
}

func (l *Library) Version() string { return l.version }

func (l *Library) problem(what string) error {
	said := l.lastError()
	switch kind, _, _ := strings.Cut(said, ":"); kind {
	case "ManifestNotFound":
		return ErrNone
	case "Remote":
		return ErrElsewhere
	}
	return fmt.Errorf("%s: %s", what, said)
}

// settings is a JSON object.
func (l *Library) context(settings string) (unsafe.Pointer, error) {
	made, contexts := l.newSettings(), l.newContexts()
	if l.update(made, settings, "json") != 0 || l.setSettings(contexts, made) != 0 {
		return nil, l.problem("settings")
	}
	context := l.newContext(contexts)
	if context == nil {
		return nil, l.problem("settings")
	}
	return context, nil
}

func (l *Library) stream(file *os.File) unsafe.Pointer {
	l.files = append(l.files, file)
	return l.newStream(uintptr(len(l.files)), l.read, l.seek, l.write, l.flush)
}

const failed = -1

func (l *Library) readFile(number uintptr, to unsafe.Pointer, size int) int {
	n, err := l.files[number-1].Read(unsafe.Slice((*byte)(to), size))
	if err != nil && !errors.Is(err, io.EOF) {
		return failed
	}
	return n
}

func (l *Library) seekFile(number uintptr, offset int, whence int32) int {
	at, err := l.files[number-1].Seek(int64(offset), int(whence))
	if err != nil {
		return failed
	}
	return int(at)
}

func (l *Library) writeFile(number uintptr, from unsafe.Pointer, size int) int {
	n, err := l.files[number-1].Write(unsafe.Slice((*byte)(from), size))
	if err != nil {
		return failed
	}
	return n
}

func (l *Library) flushFile(uintptr) int { return 0 }

func (l *Library) signBytes(_ uintptr, data unsafe.Pointer, size int, to unsafe.Pointer, room int) int {
	signature, err := l.sign(unsafe.Slice((*byte)(data), size))
	if err != nil || len(signature) > room {
		return failed
	}
	return copy(unsafe.Slice((*byte)(to), room), signature)
}

// Read returns the library's report, a JSON object. Errors: ErrNone; ErrElsewhere; the library's
// error for an unreadable file.
func (l *Library) Read(settings, mime string, file *os.File) (string, error) {
	context, err := l.context(settings)
	if err != nil {
		return "", err
	}
	reader := l.readStream(l.newReader(context), mime, l.stream(file))
	if reader == nil {
		return "", l.problem("read")
	}
	report := l.report(reader)
	if report == "" {
		return "", l.problem("report")
	}
	return report, nil
}

type Ingredient struct {
	// JSON describes the file in the format that the library documents.
	JSON string
	MIME string
	File *os.File
}

type Signing struct {
	// Settings and Manifest are JSON objects in the formats that the library documents.
	Settings, Manifest string
	MIME               string
	From, To           *os.File
	Ingredients        []Ingredient
	// Algorithm is the library's number for the algorithm. Chain contains the certificates in PEM, with the signer's
	// first. Sign returns the signature for the bytes.
	Algorithm int32
	Chain     string
	Sign      func([]byte) ([]byte, error)
}

// Sign may be called only once.
func (l *Library) Sign(s Signing) error {
	context, err := l.context(s.Settings)
	if err != nil {
		return err
	}
	builder := l.define(l.newBuilder(context), s.Manifest)
	if builder == nil {
		return l.problem("manifest")
	}
	for _, part := range s.Ingredients {
		if l.addIngredient(builder, part.JSON, part.MIME, l.stream(part.File)) != 0 {
			return l.problem("ingredient")
		}
	}
	l.sign = s.Sign
	signer := l.newSigner(0, l.signer, s.Algorithm, s.Chain, nil)
	if signer == nil {
		return l.problem("signer")
	}
	var manifest unsafe.Pointer
	if l.signStream(builder, s.MIME, l.stream(s.From), l.stream(s.To), signer, unsafe.Pointer(&manifest)) < 0 {
		return l.problem("sign")
	}
	return nil
}
