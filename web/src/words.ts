// Numbers as people read them.

export function duration(seconds: number): string {
  const size = Math.abs(seconds);
  const sign = seconds < 0 ? "−" : "";
  if (size < 59.5) return `${sign}${size.toFixed(0)} s`;
  if (size < 3570) return `${sign}${(size / 60).toFixed(0)} min`;
  if (size < 172800) return `${sign}${(size / 3600).toFixed(1)} h`;
  return `${sign}${(size / 86400).toFixed(1)} days`;
}

/** A time of the source: a date if it has one, else the day and the time of day since second 0. */
export function clock(time: number, epoch: number): string {
  const absolute = epoch + time;
  if (absolute > 1e8) {
    return new Date(absolute * 1000).toLocaleString(undefined, {
      year: "numeric",
      month: "short",
      day: "numeric",
      hour: "2-digit",
      minute: "2-digit",
      second: "2-digit",
    });
  }
  const day = Math.floor(absolute / 86400);
  const rest = Math.floor(absolute % 86400);
  const two = (value: number) => String(value).padStart(2, "0");
  return `day ${day + 1}, ${two(Math.floor(rest / 3600))}:${two(Math.floor(rest / 60) % 60)}:${two(rest % 60)}`;
}

const WHOLE = new Intl.NumberFormat("en");

/** A whole number with its thousands apart. */
export const whole = (amount: number): string => WHOLE.format(amount);

export function plural(amount: number, thing: string): string {
  return `${whole(amount)} ${thing}${amount === 1 ? "" : "s"}`;
}
