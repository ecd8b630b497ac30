import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import { maskCardText } from '../crypto/masking.ts'
import { readErrorCode } from '../error-code.ts'
import { readLogIds } from './tracing.ts'

export type Log = Logger

const NESTED = ['secret', 'accessToken', 'clientSecret', 'receiver']
const SECRETS = [
  ...NESTED.flatMap((name) => [name, `*.${name}`]),
  ...['apiKey', 'authorization', 'headers.authorization'],
]

/** Creates a structured log on standard output. As a safety net, it redacts what callers must never log. */
export function createLog(level: string, destination?: DestinationStream): Log {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    // pino adds the line's own members to this object, so it must be a new one.
    mixin: () => ({ ...readLogIds() }),
    redact: { paths: SECRETS, censor: '[hidden]' },
    serializers: { err: serializeError },
  }
  return destination ? pino(options, destination) : pino(options)
}

/** Codes for what happens outside this process, where a stack explains nothing. */
const OUTSIDE = /^(E[A-Z_]+|UND_ERR_\w+|CONNECT\w+|COMMIT_UNREPLICATED|(08|53|57|58)\w{3}|25006)$/

/** Omits the parameters in database errors, which can contain customer data. */
function serializeError(thrown: unknown) {
  // The query builder wraps the driver's error in one whose message quotes every parameter.
  const error = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown
  if (!(error instanceof Error)) {
    return { type: typeof error, message: maskCardText(String(error)) }
  }
  const code = readErrorCode(error)
  const message = maskCardText(error.message)
  if (code !== undefined && OUTSIDE.test(code)) return { type: error.name, code, message }
  return { type: error.name, code, message, stack: maskCardText(error.stack ?? '') }
}
