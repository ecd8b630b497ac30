import { isIP } from 'node:net'
import { z } from 'zod'
import type { Cidr } from '../http/client-address.ts'
import { hasKnownParameters, parseDatabaseUrl } from '../platform/postgres/hosts.ts'

// Every message has the form `<what the value must be>; <an example>`.

/** @param rule completes the message "must …" */
export function text(rule: string, form: RegExp | ((value: string) => boolean) = /./) {
  const isValid = form instanceof RegExp ? (value: string) => form.test(value) : form
  return z.string().refine(isValid, `must ${rule}`)
}

export function wholeNumber(min = 0, max = Number.MAX_SAFE_INTEGER) {
  const range = max === Number.MAX_SAFE_INTEGER ? `of at least ${min}` : `from ${min} to ${max}`
  const message = `must be a whole number ${range}; ${Math.max(min, Math.min(max, 1_000))}`
  return z
    .string()
    .regex(/^\d{1,15}$/, message)
    .transform(Number)
    .refine((value) => value >= min && value <= max, message)
}

export function choice<const T extends readonly [string, ...string[]]>(values: T) {
  return z.enum(values, `must be one of ${values.join(', ')}; ${values[0]}`)
}

export function trueOrFalse() {
  return z
    .enum(['true', 'false'], 'must be true or false; true')
    .transform((value) => value === 'true')
    .optional()
}

const DATABASE = 'postgres://user:password@db.internal:5432/ipn'

export function databaseUrl() {
  return text(
    `be a URL that starts with postgres://; ${DATABASE}`,
    (url) => !!parseDatabaseUrl(url),
  )
    .refine(
      hasKnownParameters,
      `may have the parameters sslmode, sslrootcert, application_name, and target_session_attrs=primary; ${DATABASE}?sslmode=verify-full`,
    )
    .optional()
}

/** A URL with only host and path: a user, query or fragment would silently be ignored. */
export function webAddress(example: string) {
  const rule = 'be a URL that starts with https:// or http:// and has no user, query or fragment'
  return text(`${rule}; ${example}`, isWebAddress).optional()
}

/** The origin of pages. Browsers keep sessions only over https, or over http with this machine. */
export function webOrigin(example: string) {
  const rule = 'be a URL that starts with https://, or http:// for localhost, and has no path'
  const isOrigin = (url: URL) => url.pathname === '/' && !isPlainRemote(url)
  return text(`${rule}; ${example}`, (url) => isWebAddress(url) && isOrigin(new URL(url)))
    .transform((value) => new URL(value).origin)
    .optional()
}

function isWebAddress(value: string): boolean {
  if (!/^https?:\/\/[^?#]*$/i.test(value) || !URL.canParse(value)) return false
  const { username, password } = new URL(value)
  return username === '' && password === ''
}

/** A comma-separated list, or `none` for an empty one. @param item the source of a regular expression */
export function list(item: string, what: string, example: string) {
  const form = new RegExp(`^(none|${item}(,${item})*)$`)
  return text(`be a comma-separated list of ${what}, or none; ${example}`, form).transform(
    (value) => (value === 'none' ? [] : value.split(',')),
  )
}

const CODE = '(0|-?[1-9]\\d{0,8})'

export function responseCode() {
  return text('be a whole number; 1', new RegExp(`^${CODE}$`))
}

/** @param never codes that never prove a failure, so they must not be listed */
export function responseCodes(example: string, never: readonly string[] = []) {
  return list(CODE, 'whole numbers', example).refine(
    (codes) => !codes.some((code) => never.includes(code)),
    `must not contain ${never.join(', ')}, which never prove a failure; 31,32`,
  )
}

export function amountsByCurrency() {
  const form = 'must be amounts by currency, each currency once; VND:5000000,USD:200'
  return z
    .string()
    .regex(/^[A-Z]{3}:\d{1,18}(\.\d{1,4})?(,[A-Z]{3}:\d{1,18}(\.\d{1,4})?)*$/, form)
    .transform((value) =>
      value.split(',').map((part) => {
        const [currency = '', amount = ''] = part.split(':')
        return { currency, amount }
      }),
    )
    .refine((all) => new Set(all.map(({ currency }) => currency)).size === all.length, form)
}

/** A time zone by its IANA name. Offsets are refused, because Postgres reads their sign the other way round. */
export function timeZone() {
  return text('be the name of an IANA time zone; Asia/Ho_Chi_Minh', (name) => {
    if (!/^[A-Za-z][\w+-]*(\/[\w+-]+)*$/.test(name)) return false
    try {
      return new Intl.DateTimeFormat('en', { timeZone: name }) !== undefined
    } catch {
      return false
    }
  })
}

export function cidrs() {
  const read = (value: string) => value.split(',').map((part) => parseCidr(part.trim()))
  const rule = 'be a comma-separated list of networks; 203.0.113.0/24,2001:db8::/32'
  return text(rule, (value) => !read(value).includes(undefined))
    .transform((value) => read(value).flatMap((cidr) => cidr ?? []))
    .optional()
}

/** Parses a network. A single address is a network by itself. */
export function parseCidr(value: string): Cidr | undefined {
  const [address = '', length, ...others] = value.split('/')
  const version = isIP(address)
  if (version === 0 || others.length > 0 || (length !== undefined && !/^\d{1,3}$/.test(length)))
    return undefined
  const bits = version === 4 ? 32 : 128
  const prefix = length === undefined ? bits : Number(length)
  return prefix <= bits ? { address, prefix, family: `ipv${version === 4 ? 4 : 6}` } : undefined
}

export function isLoopback(host: string): boolean {
  return /^(localhost|127(\.\d{1,3}){3}|\[?::1\]?)$/.test(host)
}

/** Returns whether a call to this URL would leave the machine unencrypted. */
export function isPlainRemote(url: URL): boolean {
  return url.protocol === 'http:' && !isLoopback(url.hostname)
}
