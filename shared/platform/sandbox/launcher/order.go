package launcher

import (
	"errors"
	"strconv"
)

const (
	ask        = "ask"
	executes   = "executes"
	reads      = "reads"
	folder     = "folder"
	filter     = "filter"
	restrict   = "landlock"
	user       = "user"
	root       = "root"
	memory     = "memory"
	maxFile    = "file"
	seconds    = "seconds"
	reserved   = "reserve"
	background = "background"
	status     = "status"
	// end separates the order from the program and its arguments.
	end = "--"
)

// digits is the length of a filter instruction in hex.
const digits = 16

func (o Order) CommandLine() []string {
	line := []string{Name}
	for _, of := range []struct {
		name string
		set  bool
	}{
		{ask, o.Ask}, {restrict, o.Landlock}, {user, o.User}, {root, o.Root}, {reserved, o.Reserve},
		{background, o.Background},
	} {
		if of.set {
			line = append(line, of.name)
		}
	}
	for _, path := range o.Executes {
		line = append(line, executes+"="+path)
	}
	for _, path := range o.Reads {
		line = append(line, reads+"="+path)
	}
	if o.Folder != "" {
		line = append(line, folder+"="+o.Folder)
	}
	if len(o.Filter) > 0 {
		line = append(line, filter+"="+encodeFilter(o.Filter))
	}
	for _, of := range []struct {
		name   string
		number int64
	}{{memory, o.Memory}, {maxFile, o.MaxFile}, {seconds, o.Seconds}, {status, int64(o.Status)}} {
		line = append(line, of.name+"="+strconv.FormatInt(of.number, 10))
	}
	return append(append(line, end, o.Program), o.Args...)
}

func parse(line []string) (o Order, err error) {
	for i, argument := range line {
		name, value, _ := cut(argument, '=')
		switch name {
		case ask:
			o.Ask = true
		case restrict:
			o.Landlock = true
		case user:
			o.User = true
		case root:
			o.Root = true
		case reserved:
			o.Reserve = true
		case background:
			o.Background = true
		case executes:
			o.Executes = append(o.Executes, value)
		case reads:
			o.Reads = append(o.Reads, value)
		case folder:
			o.Folder = value
		case filter:
			o.Filter, err = decodeFilter(value)
		case memory:
			o.Memory, err = strconv.ParseInt(value, 10, 64)
		case maxFile:
			o.MaxFile, err = strconv.ParseInt(value, 10, 64)
		case seconds:
			o.Seconds, err = strconv.ParseInt(value, 10, 64)
		case status:
			o.Status, err = strconv.Atoi(value)
		case end:
			if i+1 == len(line) {
				return o, errors.New("the order has no program")
			}
			if o.Status < 3 && !o.Ask {
				return o, errors.New("the order has no descriptor for the status")
			}
			o.Program, o.Args = line[i+1], line[i+2:]
			return o, nil
		default:
			err = errors.New("unknown")
		}
		if err != nil {
			return o, failed("the order's "+name, err)
		}
	}
	return o, errors.New("the order has no end")
}

func encodeFilter(instructions []uint64) string {
	text := make([]byte, 0, digits*len(instructions))
	for _, instruction := range instructions {
		hex := strconv.FormatUint(instruction, 16)
		for range digits - len(hex) {
			text = append(text, '0')
		}
		text = append(text, hex...)
	}
	return string(text)
}

func decodeFilter(text string) ([]uint64, error) {
	if len(text)%digits != 0 {
		return nil, errors.New("an instruction is incomplete")
	}
	instructions := make([]uint64, len(text)/digits)
	for i := range instructions {
		instruction, err := strconv.ParseUint(text[digits*i:digits*(i+1)], 16, 64)
		if err != nil {
			return nil, err
		}
		instructions[i] = instruction
	}
	return instructions, nil
}
