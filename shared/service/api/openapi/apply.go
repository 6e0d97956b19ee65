package openapi

import (
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"sync"
)

// apply applies an overlay (OpenAPI Overlay 1.0.0) whose JSONPaths each select a single value by
// names and list indexes. A complete library would add a second YAML parser and megabytes to every
// function. A missing target is an error.
func apply(document, overlay object) (object, error) {
	actions, _ := overlay.get("actions").([]any)
	var result any = document
	for _, action := range actions {
		action, _ := action.(object)
		path, err := parsePath(action.text("target"))
		if err == nil {
			result, err = change(result, path, action)
		}
		if err != nil {
			return nil, fmt.Errorf("target %s: %w", action.text("target"), err)
		}
	}
	return result.(object), nil
}

// segment matches a name or an index of a JSONPath (RFC 9535, section 2.5.1). It is compiled on
// first use, because few functions serve the document.
var segment = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(?:\.([A-Za-z_][0-9A-Za-z_]*)|\['([^'\\]*)'\]|\[(0|[1-9][0-9]*)\])`)
})

// parsePath returns names as strings and indexes as ints.
func parsePath(text string) (path []any, err error) {
	if text == "" || text[0] != '$' {
		return nil, fmt.Errorf("the path does not start with $")
	}
	for text = text[1:]; text != ""; {
		found := segment().FindStringSubmatch(text)
		switch {
		case found == nil:
			return nil, fmt.Errorf("%q does not select a single value", text)
		case found[3] != "":
			index, err := strconv.Atoi(found[3])
			if err != nil {
				return nil, err
			}
			path = append(path, index)
		default:
			path = append(path, found[1]+found[2])
		}
		text = text[len(found[0]):]
	}
	return path, nil
}

func change(value any, path []any, action object) (any, error) {
	if len(path) == 0 {
		return merge(value, action.get("update")), nil
	}
	last := len(path) == 1 && action.get("remove") == true
	switch at := path[0].(type) {
	case string:
		o, _ := value.(object)
		if o.index(at) < 0 {
			return nil, fmt.Errorf("%q does not exist", at)
		}
		if last {
			return o.without(at), nil
		}
		inner, err := change(o.get(at), path[1:], action)
		return o.set(at, inner), err
	case int:
		list, _ := value.([]any)
		if at >= len(list) {
			return nil, fmt.Errorf("item %d does not exist", at)
		}
		list = slices.Clone(list)
		if last {
			return slices.Delete(list, at, at+1), nil
		}
		inner, err := change(list[at], path[1:], action)
		list[at] = inner
		return list, err
	}
	return nil, fmt.Errorf("the segment %v is neither a name nor an index", path[0])
}

// merge merges objects and concatenates lists. It replaces anything else.
func merge(value, update any) any {
	switch update := update.(type) {
	case object:
		o, isObject := value.(object)
		if !isObject {
			return update
		}
		for _, m := range update {
			if o.index(m.name) >= 0 {
				o = o.set(m.name, merge(o.get(m.name), m.value))
			} else {
				o = append(slices.Clip(o), m)
			}
		}
		return o
	case []any:
		if list, isList := value.([]any); isList {
			return slices.Concat(list, update)
		}
	}
	return update
}
