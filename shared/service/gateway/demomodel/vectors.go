package demomodel

import (
	"cmp"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"math"
	"net/http"
	"strings"
)

const (
	dimensions    = 256 // default size of an embedding
	maxDimensions = 4096
	maxTexts      = 2048
	// maxNumbers limits the numbers in a response: texts times dimensions.
	maxNumbers = maxTexts * dimensions
)

// vector hashes a text's words into dimensions and normalizes the sum to length 1.
func vector(text string, size int) []float32 {
	v := make([]float32, size)
	for _, word := range strings.FieldsFunc(strings.ToLower(text), func(c rune) bool {
		return c < 'a' || c > 'z' && c < 0x80
	}) {
		hash := fnv.New64a()
		hash.Write([]byte(word))
		sum := hash.Sum64()
		if at := int(sum % uint64(size)); sum>>63 == 0 {
			v[at]++
		} else {
			v[at]--
		}
	}
	norm := float32(0)
	for _, x := range v {
		norm += x * x
	}
	norm = float32(math.Sqrt(float64(norm)))
	if norm == 0 {
		v[0], norm = 1, 1 // the text has no words
	}
	for i := range v {
		v[i] /= norm
	}
	return v
}

// inputs unmarshals strings or token ids, alone or in an array.
type inputs struct {
	texts []string
	ids   [][]int
}

func (in *inputs) UnmarshalJSON(text []byte) error {
	if text[0] == '"' {
		text = []byte("[" + string(text) + "]")
	}
	if json.Unmarshal(text, &in.texts) == nil {
		return nil
	}
	in.texts = nil
	var ids []int
	if json.Unmarshal(text, &ids) != nil {
		return json.Unmarshal(text, &in.ids)
	}
	in.ids = [][]int{ids}
	return nil
}

// decoded returns the texts, including texts decoded from token ids.
func (s *Server) decoded(in inputs, field string) ([]string, error) {
	for _, ids := range in.ids {
		text, err := s.config.Tokenizer.Decode(ids...)
		if err != nil {
			return nil, reject(field, "A token id is not in the vocabulary.")
		}
		in.texts = append(in.texts, text)
	}
	return in.texts, checkTexts(field, in.texts)
}

func checkTexts(field string, texts []string) error {
	size := 0
	for _, text := range texts {
		size += len(text)
	}
	if len(texts) == 0 || len(texts) > maxTexts || size > maxText {
		return reject(field, fmt.Sprintf("Expected 1 to %d texts of at most %d bytes in total.", maxTexts, maxText))
	}
	return nil
}

func (s *Server) readUsage(texts []string) object {
	n := 0
	for _, text := range texts {
		n += s.config.Tokenizer.Count(text)
	}
	return object{"prompt_tokens": n, "total_tokens": n}
}

type embeddingRequest struct {
	Model      string `json:"model"`
	Input      inputs `json:"input"`
	Encoding   string `json:"encoding_format"`
	Dimensions int    `json:"dimensions"`
}

func (s *Server) embeddings(w http.ResponseWriter, q *embeddingRequest) (object, error) {
	texts, err := s.decoded(q.Input, "input")
	if err != nil {
		return nil, err
	}
	size := cmp.Or(q.Dimensions, dimensions)
	if size < 1 || size > maxDimensions {
		return nil, reject("dimensions", fmt.Sprintf("dimensions must be from 1 to %d.", maxDimensions))
	}
	if len(texts)*size > maxNumbers {
		return nil, reject("dimensions", fmt.Sprintf("The texts times the dimensions must be at most %d.", maxNumbers))
	}
	answer := object{"object": "list", "model": q.Model, "usage": s.readUsage(texts)}
	sendList(w, answer, "data", len(texts), func(i int) object {
		embedding := vector(texts[i], size)
		item := object{"object": "embedding", "index": i, "embedding": embedding}
		if q.Encoding == "base64" {
			encoded, _ := binary.Append(nil, binary.LittleEndian, embedding) // encoding numbers cannot fail
			item["embedding"] = base64.StdEncoding.EncodeToString(encoded)
		}
		return item
	})
	return nil, nil
}
