// Function tokens mints client tokens: POST /v1/client/tokens.
package main

import (
	"crypto/rand"
	"net/http"
	"time"

	"cutroom/shared/api"
	"cutroom/shared/awsmedia"
	"cutroom/shared/credential"
	"cutroom/shared/lambdahttp"
)

func main() { lambdahttp.Main(tokens) }

func tokens() (http.Handler, lambdahttp.Form, error) {
	f, err := awsmedia.NewFunction()
	if err != nil {
		return nil, 0, err
	}
	f.Config.Minter = &credential.Minter{Store: f.Keys, Random: rand.Reader, Now: time.Now}
	handler, err := f.Handler(api.Tokens)
	return handler, lambdahttp.Buffered, err
}
