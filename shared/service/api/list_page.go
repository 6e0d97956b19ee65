package api

import (
	"net/http"

	"cutroom/shared/domain/catalog"
	"cutroom/shared/domain/cursor"
	"cutroom/shared/domain/fault"
)

// See docs/contract/limits.md#lists.
const (
	minPage     = 1
	maxPage     = 1000
	defaultPage = 100
)

// A list stays in memory until the client has read it, so accounts take turns.
func (s *service) inTurn(handle handler) handler {
	return func(w http.ResponseWriter, r *http.Request, c call) error {
		return s.listTurns.Respond(r.Context(), c.who.Account(), func() error { return handle(w, r, c) })
	}
}

// found holds problems with the query. The error means that the cursor key could not be read.
func readPage(
	r *http.Request, account string, cursors cursor.Codec,
) (limit int, after string, found problems, err error) {
	limit, sealed, found := pageQuery(r.URL.RawQuery)
	if sealed == "" {
		return limit, "", found, nil
	}
	_, err = cursors.Read(r.Context(), account, sealed)
	if fault.Is(err, fault.Invalid) {
		return limit, "", append(found, valueProblem("cursor", sealed, err.Error()).in("query")), nil
	}
	return limit, sealed, found, err
}

// pageQuery treats empty values as absent.
func pageQuery(raw string) (limit int, cursor string, found problems) {
	values := readQuery(raw)
	limit = defaultPage
	if text := values["limit"]; text != "" {
		least, most := int64(minPage), int64(maxPage)
		field := &catalog.Field{Name: "limit", Type: catalog.Integer, Min: &least, Max: &most}
		value, wrong := parse(field, &sent{name: field.Name, text: text})
		if wrong != nil {
			found = append(found, wrong.in("query"))
		} else {
			limit = int(value.(int64))
		}
	}
	return limit, values["cursor"], found
}
