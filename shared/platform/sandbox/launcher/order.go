package launcher

import (
	"errors"
	"strconv"
)

// end separates the order from the program and its arguments.
const end = "--"

// option is a part of an order. One of its pointers is set.
type option struct {
	name    string
	flag    *bool
	number  *int64
	text    *string
	texts   *[]string
	numbers *[]uint64
}

func (o *Order) options() []option {
	return []option{
		{name: "ask", flag: &o.Ask},
		{name: "landlock", flag: &o.Landlock},
		{name: "user", flag: &o.User},
		{name: "root", flag: &o.Root},
		{name: "reserve", flag: &o.Reserve},
		{name: "background", flag: &o.Background},
		{name: "executes", texts: &o.Executes},
		{name: "reads", texts: &o.Reads},
		{name: "folder", text: &o.Folder},
		{name: "filter", numbers: &o.Filter},
		{name: "memory", number: &o.Memory},
		{name: "file", number: &o.MaxFile},
		{name: "seconds", number: &o.Seconds},
		{name: "status", number: &o.Status},
	}
}

func (o Order) CommandLine() []string {
	line := []string{Name}
	for _, p := range o.options() {
		switch {
		case p.flag != nil && *p.flag:
			line = append(line, p.name)
		case p.number != nil:
			line = append(line, p.name+"="+strconv.FormatInt(*p.number, 10))
		case p.text != nil && *p.text != "":
			line = append(line, p.name+"="+*p.text)
		case p.texts != nil:
			for _, text := range *p.texts {
				line = append(line, p.name+"="+text)
			}
		case p.numbers != nil:
			for _, number := range *p.numbers {
				line = append(line, p.name+"="+strconv.FormatUint(number, 16))
			}
		}
	}
	return append(append(line, end, o.Program), o.Args...)
}

func parse(line []string) (o Order, err error) {
	options := o.options()
	for i, argument := range line {
		if argument == end {
			if i+1 == len(line) {
				return o, errors.New("the order has no program")
			}
			if o.Status < 3 && !o.Ask {
				return o, errors.New("the order has no descriptor for the status")
			}
			o.Program, o.Args = line[i+1], line[i+2:]
			return o, nil
		}
		name, value, _ := cut(argument, '=')
		if err := set(options, name, value); err != nil {
			return o, failed("the order's "+name, err)
		}
	}
	return o, errors.New("the order has no end")
}

func set(options []option, name, value string) (err error) {
	for _, p := range options {
		switch {
		case p.name != name:
			continue
		case p.flag != nil:
			*p.flag = true
		case p.number != nil:
			*p.number, err = strconv.ParseInt(value, 10, 64)
		case p.text != nil:
			*p.text = value
		case p.texts != nil:
			*p.texts = append(*p.texts, value)
		default:
			var number uint64
			number, err = strconv.ParseUint(value, 16, 64)
			*p.numbers = append(*p.numbers, number)
		}
		return err
	}
	return errors.New("unknown")
}
