package plugin

import (
	"strconv"
	"strings"
)

// Limits for users' texts, checked before the texts are read: a pod may have 256 KiB of annotations.
const (
	longestSizes  = 8 * 1024
	longestLayers = 1024
	longestWord   = 64
	longestDigits = 9
	longestShown  = 80
	mostPodsets   = 64
)

// number reads digits without a sign; false if the text is anything else, or too long for any valid number.
func number(text string) (int, bool) {
	if text == "" || len(text) > longestDigits || strings.Trim(text, "0123456789") != "" {
		return 0, false
	}
	read, err := strconv.Atoi(text)
	return read, err == nil
}

// shown returns a text in the form in which a sentence quotes it, shortened because Events and conditions of pods hold no
// long texts.
func shown(text string) string {
	if len(text) <= longestShown {
		return strconv.Quote(text)
	}
	return strconv.Quote(strings.ToValidUTF8(text[:longestShown], "")+"...") + " of " + strconv.Itoa(len(text)) + " bytes"
}
