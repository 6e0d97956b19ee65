package openapi

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/goccy/go-yaml"
)

// object is a JSON object that keeps its members in order, for human readers.
type object []member

type member struct {
	name  string
	value any
}

func (o object) MarshalJSON() ([]byte, error) {
	var text bytes.Buffer
	encoder := json.NewEncoder(&text)
	encoder.SetEscapeHTML(false)
	for i, m := range o {
		text.WriteByte("{,"[min(i, 1)])
		if err := encoder.Encode(m.name); err != nil {
			return nil, err
		}
		text.WriteByte(':')
		if err := encoder.Encode(m.value); err != nil {
			return nil, err
		}
	}
	if len(o) == 0 {
		text.WriteByte('{')
	}
	text.WriteByte('}')
	return text.Bytes(), nil
}

func (o object) index(name string) int {
	return slices.IndexFunc(o, func(m member) bool { return m.name == name })
}

func (o object) get(name string) any {
	if i := o.index(name); i >= 0 {
		return o[i].value
	}
	return nil
}

func (o object) object(name string) object {
	inner, _ := o.get(name).(object)
	return inner
}

func (o object) text(name string) string {
	text, _ := o.get(name).(string)
	return text
}

// set returns a changed copy, because documents share objects.
func (o object) set(name string, value any) object {
	o = slices.Clone(o)
	for i := range o {
		if o[i].name == name {
			o[i].value = value
			return o
		}
	}
	return append(o, member{name, value})
}

func (o object) without(names ...string) object {
	return slices.DeleteFunc(slices.Clone(o), func(m member) bool { return slices.Contains(names, m.name) })
}

func readObject(source string) (object, error) {
	var top yaml.MapSlice
	if err := yaml.UnmarshalWithOptions([]byte(source), &top, yaml.UseOrderedMap()); err != nil {
		return nil, err
	}
	return fromYAML(top).(object), nil
}

func fromYAML(value any) any {
	switch value := value.(type) {
	case yaml.MapSlice:
		o := make(object, len(value))
		for i, item := range value {
			o[i] = member{fmt.Sprint(item.Key), fromYAML(item.Value)}
		}
		return o
	case []any:
		for i := range value {
			value[i] = fromYAML(value[i])
		}
	}
	return value
}
