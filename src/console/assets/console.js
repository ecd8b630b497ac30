// What a page gains when scripts run; everything on it works without them.

/** Adds how long ago each marked time is. */
function showRelativeTimes() {
  const format = new Intl.RelativeTimeFormat('en', { numeric: 'auto' })
  for (const element of document.querySelectorAll('time[data-relative]')) {
    const minutes = Math.round(
      (Date.parse(element.getAttribute('datetime') ?? '') - Date.now()) / 60_000,
    )
    if (Number.isNaN(minutes)) continue
    /** @type {[number, Intl.RelativeTimeFormatUnit]} */
    const [value, unit] =
      Math.abs(minutes) < 60
        ? [minutes, 'minute']
        : Math.abs(minutes) < 2880
          ? [Math.round(minutes / 60), 'hour']
          : [Math.round(minutes / 1440), 'day']
    element.setAttribute('title', format.format(value, unit))
  }
}

showRelativeTimes()
