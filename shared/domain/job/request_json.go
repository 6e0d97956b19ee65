package job

import (
	"bytes"
	"encoding/json"
	"fmt"
)

// UnmarshalJSON decodes numeric options as int64s instead of floats.
func (r *Request) UnmarshalJSON(text []byte) error {
	type plain Request
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	var read plain
	if err := decoder.Decode(&read); err != nil {
		return err
	}
	for name, value := range read.Options {
		number, ok := value.(json.Number)
		if !ok {
			continue
		}
		whole, err := number.Int64()
		if err != nil {
			return fmt.Errorf("option %s: %w", name, err)
		}
		read.Options[name] = whole
	}
	*r = Request(read)
	return nil
}
