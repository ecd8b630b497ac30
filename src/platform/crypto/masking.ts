import { LosslessNumber } from 'lossless-json'

export const HIDDEN = '***'

/** Values nested more deeply are hidden without inspection. */
const MAX_DEPTH = 64

/** A card number has 13 to 19 digits (ISO/IEC 7812), here with at most three separators between two digits. */
const MIN_DIGITS = 13
const MAX_DIGITS = 19
const DIGIT_RUN = /\d(?:[\s\p{Pd}\p{Cf}._/]{0,3}\d){12,}/gu

/** Matched against the parent's and the member's name, in lower case without punctuation: `carddatacardno`. */
const NUMBER_NAME = /(?:card|cc)s?(?:data|info|details?)?(?:number|num|nbr|nr|no)s?$|cardnumber/
const NUMBER_WORD =
  /^(?:primary|card|cc|full|clear|raw|masked|virtual)*(?:pans?|primaryaccountnumber)$/
const CVV_NAME = /cvv|cvc|cvn|csc$|(?:card)?(?:security|verification)(?:code|number|value)$/
/** RFC 9562, section 4. In one of 350 random ones (version 4) some digits look like a card number. */
const UUID = /^[\da-f]{8}-[\da-f]{4}-[1-8][\da-f]{3}-[89ab][\da-f]{3}-[\da-f]{12}$/i

const CVV_IN_TEXT =
  /(cv[vcn]2?|csc|(?:security|verification)[\s_-]?(?:code|number|value))(\D{0,16}?)(\d{3,4})(?!\d)/gi

type FieldKind = 'number' | 'cvv' | undefined

/** Members never to mask, by name: `true` for a value, an object for nested members. Lists count as their elements. */
export type UnmaskedMembers = { readonly [name: string]: true | UnmaskedMembers }

type Position = { kind: FieldKind; parent: string; depth: number; unmasked: UnmaskedMembers }

const NOTHING: UnmaskedMembers = {}

/**
 * Masks card data in parsed JSON at any depth, including keys. A card number keeps at most its first six and last
 * four digits; a CVV keeps none. A card number is recognised by its member's name, or as 13 to 19 digits that pass
 * the Luhn check.
 * @param value parsed JSON whose numbers are `LosslessNumber`. A masked number becomes a string
 * @param unmasked members that are left as they are: identifiers, which would be useless if masked
 */
export function maskCardData(value: unknown, unmasked = NOTHING): unknown {
  return maskValue(value, { kind: undefined, parent: '', depth: 0, unmasked })
}

export function maskCardText(text: string): string {
  return text
    .replace(CVV_IN_TEXT, (_, name: string, between: string) => name + between + HIDDEN)
    .replace(DIGIT_RUN, maskRun)
}

function maskValue(value: unknown, position: Position): unknown {
  const { kind, parent, depth, unmasked } = position
  if (kind === 'cvv') return hideCvv(value)
  if (typeof value === 'string')
    return kind === 'number' ? maskCardNumber(value) : maskString(value)
  if (value instanceof LosslessNumber) return maskNumber(value, kind)
  if (typeof value !== 'object' || value === null) return value
  if (depth >= MAX_DEPTH) return HIDDEN
  if (Array.isArray(value)) {
    return value.map((item) => maskValue(item, { ...position, depth: depth + 1 }))
  }
  // The parser marks its numbers with this member. An object that has it would be serialised as a number.
  const members = Object.entries(value).filter(([name]) => name !== 'isLosslessNumber')
  return Object.fromEntries(
    members.map(([name, member]) => {
      const exempt = Object.hasOwn(unmasked, name) ? unmasked[name] : undefined
      if (exempt === true && [member].flat().every(isScalar)) return [name, member]
      const below = typeof exempt === 'object' ? exempt : NOTHING
      const own = kind ?? classifyName(name, parent)
      const at = { kind: own, parent: simplify(name), depth: depth + 1, unmasked: below }
      return [maskCardText(name), maskValue(member, at)]
    }),
  )
}

function isScalar(value: unknown): boolean {
  return typeof value !== 'object' || value === null || value instanceof LosslessNumber
}

/** Keeps UUIDs that contain a letter, because a masked identifier could not be used in a later request. */
function maskString(text: string): string {
  return UUID.test(text) && /[a-f]/i.test(text) ? text : maskCardText(text)
}

function classifyName(name: string, parent: string): FieldKind {
  const flat = simplify(name)
  if (CVV_NAME.test(flat)) return 'cvv'
  return NUMBER_NAME.test(parent + flat) || NUMBER_WORD.test(flat) ? 'number' : undefined
}

function simplify(name: string): string {
  return name.toLowerCase().replace(/[^a-z]/g, '')
}

/** Hides any value except null, booleans, and strings without digits and without letters other than x. */
function hideCvv(value: unknown): unknown {
  if (value === null || typeof value === 'boolean') return value
  return typeof value === 'string' && !/[^xX\P{L}]|\p{N}/u.test(value) ? value : HIDDEN
}

function maskNumber(value: LosslessNumber, kind: FieldKind): unknown {
  const whole = readIntegerDigits(value.value)
  const masked = kind === 'number' ? maskCardNumber(whole) : maskCardText(whole)
  return masked === whole ? value : masked
}

/** Returns the digits before the decimal point. Card numbers have no fraction, but may be `4.111111111111111e15`. */
function readIntegerDigits(text: string): string {
  const [, whole = '', fraction = '', exponent = '0'] =
    /^-?(\d+)(?:\.(\d*))?(?:[eE]\+?(\d{1,2}))?$/.exec(text) ?? []
  return whole + fraction.padEnd(Number(exponent), '0').slice(0, Number(exponent))
}

/** Masks without a Luhn check. A value too short for a complete number keeps only its last four characters. */
function maskCardNumber(value: string): string {
  const text = maskCardText(value)
  const symbols = [...text].filter(isSymbol)
  const isMasked = symbols.some((symbol) => !/\p{Nd}/u.test(symbol))
  const lead = isMasked || symbols.length >= MIN_DIGITS ? 6 : 0
  const end = symbols.length - 4
  let nth = -1
  return [...text]
    .map((char) => {
      if (!isSymbol(char)) return char
      nth += 1
      return /\p{Nd}/u.test(char) && nth >= lead && nth < end ? '*' : char
    })
    .join('')
}

/** Returns whether a character is a digit, or a masked one, and not a separator. */
function isSymbol(char: string): boolean {
  return !/[\s\p{Pd}\p{Cf}]/u.test(char)
}

/** Masks every sequence of whole groups of digits that is a card number, even if such sequences overlap. */
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

/** Checks the check digit (ISO/IEC 7812-1, annex B) of the digits from `from` to before `to`. */
export function passesLuhn(digits: readonly number[], from = 0, to = digits.length): boolean {
  let sum = 0
  for (let nth = from; nth < to; nth += 1) {
    const digit = digits[nth] ?? 0
    const weighted = (to - nth) % 2 === 1 ? digit : digit * 2
    sum += weighted > 9 ? weighted - 9 : weighted
  }
  return sum % 10 === 0
}

/** `paytoken` is the token of a payer's card or account, in whatever name contains it. */
const SECRET =
  /paytoken|^authorization$|(?:token|secret|passw(?:or)?d|passphrase|passcode|otp|credential|signature|apikey|securehash)(?:value|id|no)?s?$/
/** Only as a word of its own, unlike in `shopping`. */
const PIN = /(?:^|[^a-z]|card|user)pin(?:code)?$/i

/** Credentials in a text of unknown form: a name, a few quotes, a separator, and the value. Takes linear time. */
const IN_TEXT =
  /((?:token|secret|passw(?:or)?d|passphrase|passcode|otp|credential|signature|apikey|securehash|authorization)[\w.-]{0,32}[\s"'\\]{0,6}[:=>][\s"'\\]{0,6}(?:bearer\s)?)[^\s"'\\&,;<>}]+/gi

export function isSecretName(name: string): boolean {
  return SECRET.test(simplify(name)) || PIN.test(name)
}

export function hideSecretsInText(text: string): string {
  return text.replace(IN_TEXT, `$1${HIDDEN}`)
}
