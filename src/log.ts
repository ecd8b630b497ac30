import { type DestinationStream, type Logger, type LoggerOptions, pino } from 'pino'
import { maskCardText } from './mask.ts'
import { readLogIds } from './trace.ts'

export type Log = Logger

/**
 * Structured logs on standard output. What must never be written is cut here as well, whoever
 * forgets it: keys, secrets, tokens, account and card numbers. With tracing every line carries the trace
 * it belongs to.
 * @param destination in the place of standard output
 */
export function createLog(level: string, destination?: DestinationStream): Log {
  const options: LoggerOptions = {
    level,
    base: null,
    timestamp: pino.stdTimeFunctions.isoTime,
    // A new object each time: the line's own members are written into it.
    mixin: () => ({ ...readLogIds() }),
    redact: {
      paths: [
        'secret',
        'apiKey',
        'authorization',
        'accessToken',
        'clientSecret',
        'headers.authorization',
        'receiver',
        '*.secret',
        '*.accessToken',
        '*.clientSecret',
        '*.receiver',
      ],
      censor: '[hidden]',
    },
    serializers: { err: describeError },
  }
  return destination ? pino(options, destination) : pino(options)
}

/** Without the parameters that database errors carry: they can hold a customer's data. */
function describeError(thrown: unknown) {
  // The query builder wraps the driver's error in one whose message quotes every parameter.
  const error = thrown instanceof Error && thrown.cause instanceof Error ? thrown.cause : thrown
  if (!(error instanceof Error)) {
    return { type: typeof error, message: maskCardText(String(error)) }
  }
  const code = 'code' in error && typeof error.code === 'string' ? error.code : undefined
  const stack = maskCardText(error.stack ?? '')
  return { type: error.name, code, message: maskCardText(error.message), stack }
}
