import { randomUUID } from 'node:crypto'
import { isErrorStatus } from '../faults.ts'
import { writeJson } from '../wire-format.ts'

/** A success is known to have `state` 2; its `code` is a setting, and the other values are the sandbox's own. */
const ANSWERS = {
  success: { status: 200, code: 'success', state: 2, en: 'Successful', vi: 'Thành công' },
  unauthorised: {
    status: 401,
    code: 401,
    state: 0,
    en: 'The access token is missing, unknown or expired',
    vi: 'Mã truy cập bị thiếu, không hợp lệ hoặc đã hết hạn',
  },
  unknownCard: {
    status: 404,
    code: 404,
    state: 0,
    en: 'No such virtual card',
    vi: 'Không tìm thấy thẻ ảo',
  },
  badParameter: {
    status: 422,
    code: 422,
    state: 0,
    en: 'Invalid parameter',
    vi: 'Tham số không hợp lệ',
  },
  failed: { status: 200, code: 'failure', state: 0, en: 'Failed', vi: 'Thất bại' },
} satisfies Record<string, CardAnswer>

/** The content of an envelope (specification 2.1) and its HTTP status. */
export type CardAnswer = {
  status: number
  code: number | 'success' | 'failure'
  state: number
  en: string
  vi: string
  detail?: string
  data?: unknown
}

/** Returns an answer by name. `detail` is appended to the message, in English in all languages. */
export function answerCards(
  name: keyof typeof ANSWERS,
  rest: { detail?: string; data?: unknown } = {},
): CardAnswer {
  return { ...ANSWERS[name], ...rest }
}

/**
 * Returns the answer of a fault: codes from 400 to 599 are also the HTTP status, others are sent with
 * HTTP 200.
 */
export function refuseWithCode(code: number): CardAnswer {
  if (code === 401) return answerCards('unauthorised')
  return {
    ...ANSWERS.failed,
    status: isErrorStatus(code) ? code : 200,
    code,
  }
}

/** Returns the number to send. A failure is never answered with the code of a success. */
export function resolveCode({ code }: CardAnswer, successCode: number): number {
  if (code === 'success') return successCode
  if (typeof code === 'number' && code !== successCode) return code
  return successCode === 0 ? 1 : 0
}

/** Writes the envelope as JSON, with the message in `language` and `data` null if there is none. */
export function writeEnvelope(
  answer: CardAnswer,
  { language, prefix, code }: { language: string; prefix: string; code: number },
): string {
  const { state, data = null, detail } = answer
  const text = language === 'vi' ? answer.vi : answer.en
  const message = detail === undefined ? text : `${text}: ${detail}`
  return writeJson({ code, state, data, message, [`${prefix}ResponseId`]: randomUUID() })
}
