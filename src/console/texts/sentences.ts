import { findText, type Language } from './text.ts'

/**
 * The sentences that are stored and returned by the API in English, and their Vietnamese translations. `{name}` stays
 * as it is stored, `{name:}` is itself a sentence or a part of one, and `{name:group}` has a text in that group of
 * the catalogue. The first that fits is taken, so a narrow one stands before a wide one.
 */
export const SENTENCES: readonly (readonly [en: string, vi: string])[] = [
  // What people and keys did. What they wrote stays as they wrote it.
  ['requested', 'đã yêu cầu'],
  ['what was paid beyond one success, {request:}', 'phần trả thừa: {request}'],
  ['requested {by:} on behalf of {person}: {reason}', '{by} đã yêu cầu thay cho {person}: {reason}'],
  ['requested {by:}: {reason}', '{by} đã yêu cầu: {reason}'],
  ['requested {by:} on behalf of {person}', '{by} đã yêu cầu thay cho {person}'],
  ['requested {by:}', '{by} đã yêu cầu'],
  ['approved {by:}: {reason}', '{by} đã duyệt: {reason}'],
  ['approved {by:}', '{by} đã duyệt'],
  ['declined {by:}: {reason}', '{by} đã từ chối: {reason}'],
  ['declined {by:}', '{by} đã từ chối'],
  ['cancelled {by:}: {reason}', '{by} đã hủy: {reason}'],
  ['resolved {by:}: {reason} (against evidence: {evidence:}); refund of {amount} made elsewhere (request {id})', '{by} đã kết luận: {reason} (trái với bằng chứng: {evidence}); khoản hoàn {amount} tạo nơi khác (yêu cầu {id})'],
  ['resolved {by:}: {reason}; refund of {amount} made elsewhere (request {id})', '{by} đã kết luận: {reason}; khoản hoàn {amount} tạo nơi khác (yêu cầu {id})'],
  ['resolved {by:}: {reason}; an increase of {amount} that nothing explained is a refund made elsewhere', '{by} đã kết luận: {reason}; phần tăng {amount} chưa giải thích được là khoản hoàn tiền tạo nơi khác'],
  ['resolved {by:}: {reason} (against evidence: {evidence:})', '{by} đã kết luận: {reason} (trái với bằng chứng: {evidence})'],
  ['resolved {by:}: {reason}', '{by} đã kết luận: {reason}'],
  ['held {by:}: {reason}', '{by} đã tạm giữ: {reason}'],
  ['hold released {by:}: {reason}', '{by} đã bỏ tạm giữ: {reason}'],
  ['hold of the account released {by:}: {reason}', '{by} đã bỏ tạm giữ tài khoản bán hàng: {reason}'],
  ['discrepancy {id} ({kind:}) resolved {by:}: {reason}', '{by} đã xử lý sai lệch {id} ({kind}): {reason}'],
  ['discrepancy {id} ({kind:}) noted {by:}: {note}', '{by} đã ghi chú về sai lệch {id} ({kind}): {note}'],
  ['discrepancy {id} ({kind:}) assigned {by:}: nobody', '{by} đã bỏ giao sai lệch {id} ({kind})'],
  ['discrepancy {id} ({kind:}) assigned {by:}: {name}', '{by} đã giao sai lệch {id} ({kind}) cho {name}'],
  ['refund noted {by:}: {note}', '{by} đã ghi chú về lệnh hoàn tiền: {note}'],
  ['refund assigned {by:}: no person', '{by} đã bỏ giao lệnh hoàn tiền'],
  ['refund assigned {by:}: {name}', '{by} đã giao lệnh hoàn tiền cho {name}'],
  ['two people decided that the refund came back: its amount can be refunded again', 'hai người đã kết luận tiền bị trả về: số tiền này có thể được hoàn lại lần nữa'],
  ['decided as {outcome:} by {name}', '{name} kết luận: {outcome}'],
  ['a person decided that it {outcome:}', 'một người đã kết luận: {outcome}'],
  ['came back', 'tiền bị trả về'],
  ['decided as {outcome:}', 'đã kết luận: {outcome}'],

  // Attempts, and what the gateway answered.
  ['attempt recorded before sending', 'ghi nhận lần gửi trước khi gửi'],
  ['attempt recorded again: its record was lost', 'ghi nhận lại lần gửi: ghi nhận trước đó đã mất'],
  ['the attempt was interrupted; the request may have been sent', 'lần gửi bị gián đoạn; yêu cầu có thể đã được gửi'],
  ['the gateway accepted the refund (code 0)', 'cổng đã tiếp nhận lệnh hoàn tiền (mã 0)'],
  ['the gateway accepted the refund (code 0) at an earlier attempt', 'cổng đã tiếp nhận lệnh hoàn tiền (mã 0) ở một lần gửi trước'],
  ['the gateway had accepted the refund (code 0), which a person decided as failed', 'cổng đã tiếp nhận (mã 0) lệnh hoàn tiền mà một người kết luận là thất bại'],
  ['accepted (code 0)', 'đã tiếp nhận (mã 0)'],
  ['the gateway answered with {answer:}', 'cổng trả lời: {answer}'],
  ['not sent: {why:}', 'chưa gửi: {why}'],
  ['no valid answer: {why:}', 'không có trả lời dùng được: {why}'],
  ['no answer: {why:}', 'không có trả lời: {why}'],
  ['no answer', 'không có trả lời'],
  ['no answer within {ms} ms', 'không trả lời trong {ms} ms'],
  ['interrupted', 'bị gián đoạn'],
  ['calls are paused: the gateway failed several times in a row', 'đang tạm ngừng gọi: cổng lỗi nhiều lần liên tiếp'],
  ['all call slots are in use', 'đã dùng hết số lượt gọi đồng thời'],
  ['the lease would have expired during the call', 'thời hạn giữ việc sẽ hết trong lượt gọi'],
  ['the answer exceeds {n} bytes', 'trả lời dài hơn {n} byte'],
  ['the answer is not a JSON object', 'trả lời không phải là đối tượng JSON'],
  ['HTTP status {status}', 'mã HTTP {status}'],
  ['it was {status:} as never sent, but an attempt had been sent whose record was lost', 'lệnh ở trạng thái “{status}” vì chưa từng gửi, nhưng có một lần gửi đã mất ghi nhận'],
  ['it is refund {id}, whose row was lost and is stored again', 'đây là lệnh hoàn tiền {id}: dữ liệu đã mất và được lưu lại'],
  ['code {code}: {meaning:} (published meaning of the code; the gateway sent no message)', 'mã {code}: {meaning} (ý nghĩa được công bố của mã; cổng không gửi nội dung)'],
  ['{meaning:} (published meaning of the code; the gateway sent no message)', '{meaning} (ý nghĩa được công bố của mã; cổng không gửi nội dung)'],

  // Why nothing is sent, and deadlines.
  ['check before sending: {why:}', 'kiểm tra trước khi gửi: {why}'],
  ['nothing was sent', 'chưa gửi gì'],
  ['the gateway no longer lists the payment', 'cổng không còn liệt kê khoản thanh toán'],
  ['the payment is {status:}', 'khoản thanh toán ở trạng thái: {status}'],
  ['only {left} is left to refund', 'chỉ còn {left} có thể hoàn'],
  ['the payment was made by QR, and no receiver was given', 'khoản thanh toán bằng mã QR nhưng không có tài khoản ngân hàng nhận tiền'],
  ['refund {id} of {amount} was inferred, and stays reserved until it is confirmed', 'lệnh hoàn tiền {id} ({amount}) được suy ra và vẫn được giữ lại cho đến khi được xác nhận'],
  ['it has changed since it was approved', 'lệnh đã thay đổi sau khi được duyệt'],
  ['it was requested in {before}, and the gateway has notified {after} since', 'lệnh được yêu cầu bằng {before}, sau đó cổng thông báo {after}'],
  ['nothing is left of what was paid beyond one success of the order', 'không còn phần trả thừa nào của đơn hàng'],
  ['{what:} within {ms} ms ({setting})', '{what} trong {ms} ms ({setting})'],
  ['not approved', 'không được duyệt'],
  ['not sent', 'không được gửi'],
  ['still unresolved {ms} ms after the last attempt', 'vẫn chưa rõ kết quả {ms} ms sau lần gửi cuối'],
  ['refused with code {code}, and the refunded amount did not increase within {ms} ms', 'bị từ chối với mã {code}, và số tiền đã hoàn không tăng trong {ms} ms'],
  ['the code is not known to be final{setting}', 'chưa biết mã này có là kết quả cuối cùng hay không{setting}'],
  ['the database was restored since, and may have forgotten that it was sent', 'cơ sở dữ liệu đã được khôi phục sau đó và có thể đã mất ghi nhận rằng lệnh được gửi'],
  ['the database was restored, and its payment shows growth that may be its own; nothing was sent since', 'cơ sở dữ liệu đã được khôi phục, và khoản thanh toán cho thấy phần tăng có thể do chính lệnh này; từ đó chưa gửi gì'],
  ['no rule lets a refund that is {status:} be {move} ({why:})', 'không có quy tắc nào cho lệnh hoàn tiền ở trạng thái “{status}” được chuyển {move} ({why})'],
  ['a refund that was {status:}', 'lệnh hoàn tiền ở trạng thái: {status}'],

  // Notifications.
  ['the gateway notified that the refund succeeded', 'cổng thông báo lệnh hoàn tiền thành công'],
  ['the gateway notified that it succeeded', 'cổng thông báo lệnh thành công'],
  ['the gateway notified that the refund failed', 'cổng thông báo lệnh hoàn tiền thất bại'],
  ['the gateway notified a failure (code {code})', 'cổng thông báo thất bại (mã {code})'],
  ['the gateway notified a failure', 'cổng thông báo thất bại'],
  ['the gateway notified both a failure (code {code}) and a success', 'cổng thông báo cả thất bại (mã {code}) lẫn thành công'],
  ['{notified:} and another one (code {code})', '{notified} và một thất bại khác (mã {code})'],
  ['{notified:} and a success', '{notified} và thành công'],
  ['{notified:} after the refund had succeeded', '{notified} sau khi lệnh hoàn tiền đã thành công'],
  ['{notified:} after {n} attempts', '{notified} sau {n} lần gửi'],
  ['{notified:} of one of {n} attempts', '{notified} của một trong {n} lần gửi'],
  ['{notified:} of a refund that was not sent from here', '{notified} của lệnh hoàn tiền không được gửi từ đây'],
  ['{notified:} while the refund was in review', '{notified} khi lệnh hoàn tiền đang cần quyết định'],
  ['{notified:} although a restore may have forgotten an attempt', '{notified} dù lần khôi phục có thể đã làm mất ghi nhận một lần gửi'],
  ['{notified:}, and no success within {ms} ms', '{notified}, và không có thành công nào trong {ms} ms'],
  ['{notified:}, and two later queries, {ms} ms apart, show no increase of the refunded amount', '{notified}, và hai lần hỏi sau đó, cách nhau {ms} ms, cho thấy số tiền đã hoàn không tăng'],
  ['the gateway notified its request id, but as far as is known it was not sent', 'cổng thông báo mã yêu cầu của lệnh, nhưng theo những gì đã biết thì lệnh chưa được gửi'],
  ['the gateway notified its request id (code {code}), but it was not sent from here', 'cổng thông báo mã yêu cầu của lệnh (mã {code}), nhưng lệnh không được gửi từ đây'],
  ['the gateway notified its request id with another payment or amount', 'cổng thông báo mã yêu cầu của lệnh với khoản thanh toán hoặc số tiền khác'],
  ['the gateway notified its success before the refund was stored; it is not sent again', 'cổng đã thông báo lệnh thành công trước khi lệnh được lưu; lệnh không được gửi lại'],
  ['the gateway notified this request id before the refund was stored, and its success is not known beyond doubt; it is not sent again', 'cổng đã thông báo mã yêu cầu này trước khi lệnh được lưu, và chưa chắc lệnh đã thành công; lệnh không được gửi lại'],
  ['success notification', 'thông báo thành công'],
  ['failure notification, code {code}, id {id}', 'thông báo thất bại, mã {code}, số {id}'],
  ['failure notification, code {code}', 'thông báo thất bại, mã {code}'],
  ['{notified:}, id {id}', '{notified}, số {id}'],
  ['no notification, no growth', 'không có thông báo, số tiền đã hoàn không tăng'],
  ['no notification', 'không có thông báo'],
  ['its hash was received with other values as well', 'chữ ký của nó còn đến với giá trị khác'],
  ['its hash is not verified', 'chữ ký chưa được xác minh'],
  ['not those of the refund', 'không khớp với lệnh hoàn tiền'],

  // The refunded amount.
  ['the refunded amount is {amount}, {grown} more than before it was sent', 'số tiền đã hoàn là {amount}, nhiều hơn {grown} so với trước khi gửi lệnh'],
  ['no refund explains {amount} of it', 'trong đó {amount} không thuộc lệnh hoàn tiền nào'],
  ['no answer about the payment has come since it was sent', 'chưa có trả lời nào về khoản thanh toán từ khi gửi lệnh'],
  ['its amount is matched to this refund', 'phần này được khớp với lệnh hoàn tiền này'],
  ['the refunded amount was {before} when it was sent, and an answer shows {after}', 'khi gửi lệnh, số tiền đã hoàn là {before}, và một trả lời cho thấy {after}'],
  ['inferred: {growth:}', 'suy ra: {growth}'],
  ["the payment's refunded amount grew to {amount}, by the amount of its only open refund", 'số tiền đã hoàn của khoản thanh toán tăng lên {amount}, đúng bằng lệnh hoàn tiền duy nhất chưa kết thúc'],
  ['{growth:}, but the database was restored: it may be that of a refund whose row was lost', '{growth}, nhưng cơ sở dữ liệu đã được khôi phục: có thể đó là của một lệnh hoàn tiền đã mất dữ liệu'],
  ['it had failed, but nothing else explains {amount} of the refunded amount, which is its amount', 'lệnh đã thất bại, nhưng không có gì khác giải thích được {amount} trong số tiền đã hoàn, đúng bằng số tiền của lệnh'],
  ['the increase that it was inferred from may belong to another refund', 'phần tăng dùng để suy ra có thể thuộc lệnh hoàn tiền khác'],
  ['the refunded amount grew to {amount} since it was sent, and no other refund explains {grown} of it', 'số tiền đã hoàn tăng lên {amount} từ khi gửi lệnh, và {grown} trong đó không thuộc lệnh hoàn tiền nào khác'],
  ['the refunded amount grew by it, and no other refund explains that', 'số tiền đã hoàn tăng đúng bằng khoản này, và không lệnh hoàn tiền nào khác giải thích được'],
  ['the refunded amount shows it', 'số tiền đã hoàn đã gồm khoản này'],
  ['the refunded amount showed it when the payment was first seen', 'số tiền đã hoàn đã gồm khoản này khi ghi nhận khoản thanh toán lần đầu'],
  ['two answers showed the refunded amount lower by it', 'hai trả lời cho thấy số tiền đã hoàn giảm đúng bằng khoản này'],
  ['two answers, apart, show the refunded amount at {amount}, lower by the refund that came back: its amount can be refunded again', 'hai trả lời cách nhau cho thấy số tiền đã hoàn là {amount}, giảm đúng bằng khoản bị trả về: số tiền này có thể được hoàn lại lần nữa'],
  ['{grown} of the refunded amount {amount} of payment {id} are not explained by a known refund, and may be this refund', '{grown} trong số tiền đã hoàn {amount} của khoản thanh toán {id} không thuộc lệnh hoàn tiền nào đã biết và có thể là lệnh này'],
  ['the gateway does not list its payment any more, or not readably', 'cổng không còn liệt kê khoản thanh toán của lệnh, hoặc liệt kê không đọc được'],
  ['no increase of the refunded amount shows it', 'số tiền đã hoàn không tăng tương ứng'],
  ['no decrease of the refunded amount shows it', 'số tiền đã hoàn không giảm tương ứng'],
  ['{amount} more is explained by refunds', 'tổng các lệnh hoàn tiền đã biết cao hơn {amount}'],

  // Refunds made elsewhere.
  ['the refunded amount shows {when:} the refund of {amount} made elsewhere (request {id})', 'số tiền đã hoàn {when} đã gồm khoản hoàn {amount} tạo nơi khác (yêu cầu {id})'],
  ['when the payment was first seen', 'khi ghi nhận khoản thanh toán lần đầu'],
  ['now', 'hiện nay'],
  ['the gateway notified a refund of {amount} made elsewhere (request {id})', 'cổng thông báo khoản hoàn {amount} tạo nơi khác (yêu cầu {id})'],
  ['another reading of its notification was matched (request {id})', 'một cách đọc khác của thông báo đã được khớp (yêu cầu {id})'],
  ['a notified refund of {amount} (request {id}) takes its place', 'khoản hoàn {amount} được thông báo (yêu cầu {id}) thay thế khoản này'],
  ['{amount} is left of it', 'còn lại {amount}'],
  ['external refund {id} of {amount} decided as {outcome:} by {name}', 'khoản hoàn tiền tạo nơi khác {id}, {amount}: {name} kết luận {outcome}'],
  ['external refund {id} of {amount}', 'khoản hoàn tiền tạo nơi khác {id}, {amount}'],
  ['a person decided it as {outcome:}', 'một người đã kết luận: {outcome}'],
  ['its success and its failure were both notified', 'được thông báo vừa thành công vừa thất bại'],
  ['another notification of its success', 'thêm một thông báo thành công'],
  ['its failure was notified', 'được thông báo là thất bại'],
  ['its failure was notified, or another reading of its notification was matched', 'được thông báo là thất bại, hoặc một cách đọc khác của thông báo đã được khớp'],
  ['nothing is reserved for it', 'chưa giữ lại số tiền nào cho khoản này'],

  // The sides of the other discrepancies.
  ['{n} payments succeeded, together {amount}', '{n} khoản thanh toán thành công, tổng cộng {amount}'],
  ['one payment is expected', 'chờ một khoản thanh toán'],
  ['{what:} is expected of order {id}', 'đơn hàng {id} cần {what}'],
  ['one paid transaction', 'một giao dịch đã thanh toán'],
  ['amount {amount} is expected', 'cần số tiền {amount}'],
  ['also paid: {ids}', 'cũng được thanh toán: {ids}'],
  ['paid {amount} in {n} payments', 'đã trả {amount} qua {n} khoản thanh toán'],
  ['not applied, because the entry {why:}', 'không áp dụng, vì mục này {why}'],
  ['is not an object', 'không phải là đối tượng'],
  ['has no {field:field}', 'không có {field}'],
  ['has an id that is listed twice', 'có mã được liệt kê hai lần'],
  ['has a value as its {field:field} that is no amount', 'có giá trị ở {field} không phải là số tiền'],
  ['{status:states.payment} {amount} of transaction {id}', '{status} {amount} của giao dịch {id}'],
  ['listed under transaction {id}', 'được liệt kê ở giao dịch {id}'],
  ['not listed', 'không được liệt kê'],
  ['state {state:states.transaction}, known by a request to sync', 'tình trạng: {state}; biết được nhờ yêu cầu hỏi cổng'],
  ['has refunds that have not ended', 'có lệnh hoàn tiền chưa kết thúc'],
  ['the merchant account is not configured', 'tài khoản bán hàng không có trong cấu hình'],

  // Lists, and what they list.
  ['{expired:}, but {why:}', '{expired}, nhưng {why}'],
  ['{one:}; {more:}', '{one}; {more}'],
  ['{by:}, who {also:}', '{by} (cũng là người {also})'],
  ['{by:}, which {also:}', '{by} (cũng là bên {also})'],
  ['also requested it', 'đã yêu cầu'],
  ['also requested {refunds:}', 'đã yêu cầu {refunds}'],
  ['refund {id}', 'lệnh hoàn tiền {id}'],
  ['refunds {ids:}', 'các lệnh hoàn tiền {ids}'],
  ['also decided before', 'đã quyết định trước đó'],
  ['{one:}, {more:}', '{one}, {more}'],
  ['and {n} more', 'và {n} khoản khác'],
  ['{ids} and {n} more', '{ids} và {n} lệnh khác'],
  ['code {code}: {message}', 'mã {code}: {message}'],
  ['code {code}', 'mã {code}'],
  ['request {id}', 'yêu cầu {id}'],
  ['payment {id}', 'khoản thanh toán {id}'],
  ['amount {amount}', 'số tiền {amount}'],
  ['paid {amount}', 'đã trả {amount}'],
  ['refundedAmount {amount}', 'số tiền đã hoàn {amount}'],
  ['status {status:}', 'trạng thái: {status}'],
  ['order id {id}', 'mã đơn hàng {id}'],
  ['merchant transaction id {id}', 'mã giao dịch của cửa hàng {id}'],
  ['currency {currency}', 'loại tiền {currency}'],
  ['by {name}', '{name}'],
  ['with API key {name}', 'khóa API {name}'],
  ['with {name}', '{name}'],
  ['{status:states.payment} {amount}', '{status} {amount}'],
  ['{status:states.refund}', '{status}'],
  ['{status:states.payment}', '{status}'],
  ['{state:states.externalRefund}', '{state}'],
  ['{kind:discrepancies.kinds}', '{kind}'],

  // The published meanings of codes.
  ['success', 'thành công'],
  ['waiting for payment', 'chờ thanh toán'],
  ['cancelled by the customer', 'khách hàng đã hủy'],
  ['duplicate merchant transaction id', 'trùng mã giao dịch của cửa hàng'],
  ['integration not approved', 'kết nối chưa được duyệt'],
  ['invalid order id', 'mã đơn hàng không hợp lệ'],
  ['invalid transaction id', 'mã giao dịch không hợp lệ'],
  ['invalid amount', 'số tiền không hợp lệ'],
  ['invalid currency', 'loại tiền không hợp lệ'],
  ['invalid decimals', 'số chữ số thập phân không hợp lệ'],
  ['processing', 'đang xử lý'],
  ['expired', 'đã hết hạn'],
]

/** Places without a space. */
const FIGURES = ['amount', 'code', 'grown', 'left', 'n', 'ms']

const PLACE = /\{(\w+)(?::([\w.]*))?\}/g

/** The English sentences as expressions, with the group of each place, which is `''` for a sentence. */
const PATTERNS = SENTENCES.map(([en, vi]) => {
  const places = [...en.matchAll(PLACE)].map(([, name = '', group]) => ({ name, group }))
  const whole = en.replaceAll(/\{(\w+).*?\}|[.*+?^$()|[\]\\]/g, (part, name?: string) => {
    if (name === undefined) return `\\${part}`
    return FIGURES.includes(name) ? String.raw`(\S*?)` : '(.*?)'
  })
  return { whole: new RegExp(`^${whole}$`, 's'), places, vi }
})

/** Translates a stored sentence. An unknown one, and what people wrote, stays as it is. */
export function sayStored(language: Language, text: string): string {
  if (language === 'en') return text
  for (const pattern of PATTERNS) {
    const said = fill(pattern, text)
    if (said !== undefined) return said
  }
  return text
}

/** @returns undefined if the text is not this sentence, or holds a value that the catalogue does not */
function fill({ whole, places, vi }: (typeof PATTERNS)[number], text: string): string | undefined {
  const found = whole.exec(text)
  if (!found) return undefined
  const said = new Map(places.map(({ name, group }, at) => [name, sayValue(group, found[at + 1] ?? '')]))
  if ([...said.values()].includes(undefined)) return undefined
  return vi.replaceAll(PLACE, (place, name: string) => said.get(name) ?? place)
}

function sayValue(group: string | undefined, value: string): string | undefined {
  if (group === undefined) return value
  if (group === '') return sayStored('vi', value)
  const named = findText('vi', `${group}.${value}`)
  return named && named.charAt(0).toLowerCase() + named.slice(1)
}
