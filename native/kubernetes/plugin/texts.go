package plugin

import (
	"strconv"
	"strings"
)

// What users write is bounded before it is looked at: a pod may have 256 KiB of annotations.
const (
	longestSizes  = 8 * 1024
	longestWord   = 64
	longestDigits = 9
	longestShown  = 80
	mostPodsets   = 64
)

// number reads digits without a sign; false if the text is anything else, or longer than any number that is meant here.
func number(text string) (int, bool) {
	if text == "" || len(text) > longestDigits || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	read, err := strconv.Atoi(text)
	return read, err == nil
}

// shown is a text as a sentence quotes it: Events and conditions of pods hold no long ones.
func shown(text string) string {
	if len(text) <= longestShown {
		return strconv.Quote(text)
	}
	return strconv.Quote(strings.ToValidUTF8(text[:longestShown], "")+"...") + " of " + strconv.Itoa(len(text)) + " bytes"
}
