// Function inference is the text inference gateway: /v1/chat/completions, /v1/completions, /v1/responses, /v1/messages,
// /v1/messages/count_tokens, /v1/embeddings, /v1/rerank (also as /v2/rerank and /rerank), /v1/score,
// /v1/audio/transcriptions, /v1/audio/speech, /v1/models and /v1/usage.
package main

import (
	"net/http"
	"os"

	"cutroom/shared/app/modelapp"
	"cutroom/shared/platform/lambdahttp"
	"cutroom/shared/service/gateway"
)

func main() { lambdahttp.Main(inference) }

func inference() (http.Handler, lambdahttp.Mode, error) {
	mode, err := lambdahttp.ResponseMode(os.Getenv)
	if err != nil {
		return nil, 0, err
	}
	p, err := modelapp.New()
	if err != nil {
		return nil, 0, err
	}
	handler, err := p.Handler(gateway.Models)
	return handler, mode, err
}
