import { LosslessNumber } from 'lossless-json'

/** What stands in the place of a CVV. */
const HIDDEN = '***'

/** Deeper than this nothing is looked at any more: it is hidden. */
const MAX_DEPTH = 64

/** A card number has 13 to 19 digits (ISO/IEC 7812); what separates them in writing is at most three characters. */
const MIN_DIGITS = 13
const MAX_DIGITS = 19
const RUN = /\d(?:[\s\p{Pd}\p{Cf}._]{0,3}\d){12,}/gu

/** Names with what is around them, in lower case and without punctuation: `cardData.cardNo` is `carddatacardno`. */
const NUMBER_NAME = /(?:card|cc)s?(?:data|info|details?)?(?:number|num|nbr|nr|no)s?$|cardnumber/
const NUMBER_WORD =
  /^(?:primary|card|cc|full|clear|raw|masked|virtual)*(?:pans?|primaryaccountnumber)$/
const CVV_NAME = /cvv|cvc|cvn|csc$|(?:card)?(?:security|verification)(?:code|number|value)$/
/** RFC 9562, section 4. In one of 350 random ones (version 4) some digits pass for a card number's. */
const UUID = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i

const CVV_IN_TEXT = /(cv[vc]2?)(\D{0,16}?)(\d{3,4})(?!\d)/gi

type Kind = 'number' | 'cvv' | undefined

/**
 * Hides card data in whatever a gateway sends, at any depth, keys included: of a card number at most the
 * first six and the last four digits stay, of a CVV nothing. A card number is known by its name, or by 13
 * to 19 digits that pass the Luhn check, separated or not, in a text or as a JSON number (which becomes a
 * text). What is masked already passes unchanged. Longer rows of digits are no card number; nor is, but under
 * the name of one, a text that is a UUID with a letter in it.
 * @param value parsed JSON whose numbers are `LosslessNumber`
 */
export function maskCardData(value: unknown): unknown {
  return maskValue(value, undefined, '', 0)
}

/** The same for a text alone: a message, a reason, a path. */
export function maskCardText(text: string): string {
  return text
    .replace(CVV_IN_TEXT, (_, name: string, between: string) => name + between + HIDDEN)
    .replace(RUN, maskRun)
}

function maskValue(value: unknown, kind: Kind, parent: string, depth: number): unknown {
  if (kind === 'cvv') return hideCvv(value)
  if (typeof value === 'string') return kind === 'number' ? maskNamed(value) : maskLeaf(value)
  if (value instanceof LosslessNumber) return maskNumber(value, kind)
  if (typeof value !== 'object' || value === null) return value
  if (depth >= MAX_DEPTH) return HIDDEN
  if (Array.isArray(value)) return value.map((one) => maskValue(one, kind, parent, depth + 1))
  const entries = Object.entries(value)
  const labelled = readLabel(entries)
  // The parser marks its numbers with this member: an object that has one would be written as a number.
  const own = entries.filter(([name]) => name !== 'isLosslessNumber')
  return Object.fromEntries(
    own.map(([name, member]) => {
      const said = isLabel(name) ? kind : (kind ?? labelled)
      const found = said ?? classify(name, parent)
      return [maskCardText(name), maskValue(member, found, simplify(name), depth + 1)]
    }),
  )
}

/** An identifier is not touched: what is asked for by it next would not be found. */
function maskLeaf(text: string): string {
  return UUID.test(text) && /[a-f]/i.test(text) ? text : maskCardText(text)
}

function classify(name: string, parent = ''): Kind {
  const flat = simplify(name)
  if (CVV_NAME.test(flat)) return 'cvv'
  return NUMBER_NAME.test(parent + flat) || NUMBER_WORD.test(flat) ? 'number' : undefined
}

function simplify(name: string): string {
  return name.toLowerCase().replace(/[^a-z]/g, '')
}

/** `{"name":"cvv","value":"123"}`: a member that says what the others are. */
function readLabel(entries: readonly [string, unknown][]): Kind {
  for (const [name, value] of entries) {
    if (isLabel(name) && typeof value === 'string' && value.length <= 32) {
      const kind = classify(value)
      if (kind) return kind
    }
  }
  return undefined
}

function isLabel(name: string): boolean {
  return /^(?:name|key|field|label)$/i.test(name)
}

/** Nothing is left to hide in an empty value, a yes or no, and a text without letters (but x) and digits. */
function hideCvv(value: unknown): unknown {
  if (value === null || typeof value === 'boolean') return value
  return typeof value === 'string' && !/[^xX\P{L}]|\p{N}/u.test(value) ? value : HIDDEN
}

function maskNumber(value: LosslessNumber, kind: Kind): unknown {
  const whole = readWhole(value.value)
  const masked = kind === 'number' ? maskNamed(whole) : maskCardText(whole)
  return masked === whole ? value : masked
}

/** The digits before the point: no card number has a fraction, but `4.111111111111111e15` is one. */
function readWhole(text: string): string {
  const [, whole = '', fraction = '', exponent = '0'] =
    /^-?(\d+)(?:\.(\d*))?(?:[eE]\+?(\d{1,2}))?$/.exec(text) ?? []
  return whole + fraction.padEnd(Number(exponent), '0').slice(0, Number(exponent))
}

/** Called a card number: nobody asks the Luhn check. One too short to be whole keeps its last four only. */
function maskNamed(named: string): string {
  const text = maskCardText(named)
  const places = [...text].filter(isPlace)
  const masked = places.some((place) => !/\p{Nd}/u.test(place))
  const lead = masked || places.length >= MIN_DIGITS ? 6 : 0
  const end = places.length - 4
  let nth = -1
  return [...text]
    .map((char) => {
      if (!isPlace(char)) return char
      nth += 1
      return /\p{Nd}/u.test(char) && nth >= lead && nth < end ? '*' : char
    })
    .join('')
}

function isPlace(char: string): boolean {
  return !/[\s\p{Pd}\p{Cf}]/u.test(char)
}

/** Every stretch of whole groups that is a card number is masked; where several overlap, each of them is. */
function maskRun(run: string): string {
  const chars = run.split('')
  const places = chars.flatMap((char, at) => (char >= '0' && char <= '9' ? [at] : []))
  const digits = places.map((at) => Number(run[at]))
  const isEdge = (nth: number) => (places[nth - 1] ?? -2) + 1 !== places[nth]
  for (let from = 0; from + MIN_DIGITS <= places.length; from += 1) {
    if (!isEdge(from)) continue
    for (let to = from + MIN_DIGITS; to <= from + MAX_DIGITS && to <= places.length; to += 1) {
      if (!isEdge(to) || !passesLuhn(digits, from, to)) continue
      for (const at of places.slice(from + 6, to - 4)) chars[at] = '*'
    }
  }
  return chars.join('')
}

/** The check digit of ISO/IEC 7812-1, annex B, of the digits from `from` to before `to`. */
export function passesLuhn(digits: readonly number[], from = 0, to = digits.length): boolean {
  let sum = 0
  for (let nth = from; nth < to; nth += 1) {
    const digit = digits[nth] ?? 0
    const weighed = (to - nth) % 2 === 1 ? digit : digit * 2
    sum += weighed > 9 ? weighed - 9 : weighed
  }
  return sum % 10 === 0
}
