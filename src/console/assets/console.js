// What scripts add. Everything works without them.

/** Screen readers read its text aloud when it changes. */
const announcer = document.getElementById('announcer') ?? document.body
const { textCopy: copy, textCopied: copied } = announcer.dataset
const relative = new Intl.RelativeTimeFormat(document.documentElement.lang, { numeric: 'auto' })

/** @type {[number, Intl.RelativeTimeFormatUnit][]} */
const UNITS = [
  [1_440, 'day'],
  [60, 'hour'],
]
/** @param {number} ms */
const pause = (ms) => new Promise((done) => setTimeout(done, ms))

/** Writes behind each time how long ago it is. @param {ParentNode} root */
function showTimes(root) {
  for (const time of root.querySelectorAll('time')) {
    const minutes = Math.round((Date.parse(time.dateTime) - Date.now()) / 60_000)
    const [size, unit] = UNITS.find(([least]) => Math.abs(minutes) >= least) ?? [1, 'minute']
    const ago = relative.format(Math.round(minutes / size), unit)
    time.title ||= time.textContent.trim()
    time.textContent = `${time.title} (${ago})`
  }
}

/** @param {ParentNode} root */
function enhance(root) {
  showTimes(root)
  for (const element of navigator.clipboard ? root.querySelectorAll('[data-copy]') : []) {
    const value = element.textContent
    const button = document.createElement('button')
    button.type = 'button'
    button.className = 'copy quiet'
    button.textContent = copy ?? ''
    button.ariaLabel = `${copy} ${value}`
    button.onclick = async () => {
      await navigator.clipboard.writeText(value)
      announcer.textContent = `${copied} ${value}`
    }
    element.after(' ', button)
  }
}

/** Parts as the server wrote them, by id. @type {Map<string, string>} */
const known = new Map()
/** Leaves out form tokens, which always differ. @param {Element} part */
const write = (part) => part.innerHTML.replaceAll(/name="formToken" value="[^"]*"/g, '')

/** Replaces the parts that differ, without scrolling the page. @param {string} html */
function takeOver(html) {
  const next = new DOMParser().parseFromString(html, 'text/html')
  const measure = () => seen?.getBoundingClientRect().top ?? 0
  const seen = [...document.querySelectorAll('[data-live]')].find(
    (part) => part.getBoundingClientRect().bottom > 0,
  )
  const top = measure()
  for (const part of next.querySelectorAll('[data-live]')) {
    const shown = document.getElementById(part.id)
    const written = write(part)
    if (shown && known.get(part.id) !== written) replacePart(shown, part)
    known.set(part.id, written)
  }
  scrollBy({ top: measure() - top, behavior: 'instant' })
}

/** What is unfolded, typed and focused stays so. @type {(shown: HTMLElement, part: Element) => void} */
function replacePart(shown, part) {
  const heading = shown.querySelector('h2')?.textContent
  const unfolded = [...shown.querySelectorAll('details[open]')].map(({ id }) => id)
  const typed = new Map([...shown.querySelectorAll('input')].map(({ id, value }) => [id, value]))
  /** @returns {any[]} */
  const list = () => [...shown.querySelectorAll('a, button, summary, input')]
  const active = document.activeElement
  const place = list().indexOf(active)
  shown.replaceChildren(...part.childNodes)
  enhance(shown)
  for (const one of shown.querySelectorAll('details')) one.open ||= unfolded.includes(one.id)
  for (const one of shown.querySelectorAll('input')) {
    if (one.id) one.value = typed.get(one.id) ?? one.value
  }
  const same = active?.id ? document.getElementById(active.id) : list()[place]
  if (place >= 0) (same ?? shown).focus({ preventScroll: true })
  const now = shown.querySelector('h2')?.textContent ?? ''
  if (shown.dataset.live === 'announce' && now !== heading) announcer.textContent = now
}

/** @param {string} etag */
async function keepFresh(etag) {
  for (let failures = 0; ; ) {
    while (document.hidden) await pause(1_000)
    const answer = await fetch(location.href, {
      headers: { 'x-refresh': '1', 'if-none-match': etag },
      redirect: 'manual',
      cache: 'no-store',
    }).catch(() => Response.error())
    if (answer.type === 'opaqueredirect' || (answer.status >= 400 && answer.status < 429)) {
      // The server leads to the sign-in.
      const typed = [...document.querySelectorAll('input')].some(
        ({ type, value, defaultValue }) => type === 'text' && value !== defaultValue,
      )
      if (!typed) location.reload()
      return
    }
    failures = [200, 304].includes(answer.status) ? 0 : failures + 1
    if (answer.status === 200) {
      takeOver(await answer.text())
      etag = answer.headers.get('etag') ?? ''
    }
    const backoff = failures && Math.min(60, 2 ** failures) * (0.5 + Math.random())
    await pause(1_000 * Math.max(Number(answer.headers.get('retry-after') ?? 5), backoff))
  }
}

/** When a form was sent last: a double click sends it once. */
let sentAt = Number.NEGATIVE_INFINITY
addEventListener('submit', (event) => {
  if (event.timeStamp - sentAt < 1_000) event.preventDefault()
  else sentAt = event.timeStamp
})

// What was typed stays with the page in the history: browsers give back no field that they are told not to remember.
// They may write the history to disk, so what is sensitive has to be typed again.
addEventListener('change', () => {
  const typed = [...document.querySelectorAll('input')].filter(
    ({ autocomplete, dataset, form }) =>
      autocomplete === 'off' && !dataset.sensitive && form?.method === 'post',
  )
  history.replaceState(Object.fromEntries(typed.map(({ id, value }) => [id, value])), '')
})
for (const [id, value] of Object.entries(history.state ?? {})) {
  const input = document.getElementById(id)
  if (input instanceof HTMLInputElement) input.value = value
}

for (const part of document.querySelectorAll('[data-live]')) known.set(part.id, write(part))
enhance(document)
const fresh = document.querySelector('[data-refresh]')?.getAttribute('data-refresh')
if (fresh) keepFresh(fresh)
for (;;) {
  await pause(30_000)
  showTimes(document)
}
