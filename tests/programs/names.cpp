// Functions whose names are hard to read: templates in each other, packs, references, lambdas, members of types that
// depend on arguments, conversions, literals.
#include <complex>
#include <string>
#include <tuple>
#include <type_traits>
#include <utility>

namespace pipe {
struct End {};
template <class T> struct A { template <class U> void run(U) {} operator T() const { return T(); } };
template <class T> struct B { T inner; };
template <class... T> struct List { template <class... U> void both(U &&...) {} };
template <class F> struct Call { void on(F *) {} };
template <class F> void enqueue(Call<F> *) {}

using Deep = A<B<A<B<A<B<A<B<A<B<A<B<A<B<A<B<A<B<A<B<A<B<A<B<End>>>>>>>>>>>>>>>>>>>>>>>>;

template <class... T> void many(T &&...all) {
    auto inner = [&](auto &&one, auto two) { return sizeof(one) + sizeof(two) + sizeof...(all); };
    inner(1, 'c');
    struct Local { void member(T...) {} };
    Local().member(all...);
}
template <std::size_t... N> void spread(std::integer_sequence<std::size_t, N...>) {
    [](auto &&...) {}(N...);
}
template <class T, class F> void with(T &&value, F &&call) { call(std::forward<T>(value)); }
template <class T> typename std::enable_if<std::is_integral<T>::value && sizeof(T) == 4, T>::type only(T value) { return value; }
template <class T> auto deduced(T value) -> decltype(value + 1) { return value + 1; }
template <int (*F)(int), bool Flag, char C, long long N> int apply() { return F(1) + Flag + C + N; }
template <int (End::*M)(), class... R> void member() {}
int plain(int value) { return value; }
struct Ops {
    Ops &operator+=(int) & { return *this; }
    Ops operator()(const volatile char *const &, int (&)[4], double (*)(float, ...)) const && { return *this; }
    template <class T> explicit operator B<T>() const { return {}; }
    friend bool operator<(const Ops &, const Ops &) { return false; }
    template <class T> bool operator<<(T *) { return true; }
    void *operator new(std::size_t size) { return ::operator new(size); }
    ~Ops() {}
};
long double operator""_units(long double value) { return value; }
void pointers(int (*(*)(char))[3], int End::*, void (Ops::*)(int) const, std::complex<double> &&, std::nullptr_t) {}
enum class Color : unsigned char { red, green };
template <Color C, unsigned U, short S> void colored() {}
namespace { struct Hidden { void seen() {} }; }
} // namespace pipe

int main() {
    using namespace pipe;
    Deep().run(1);
    A<A<Deep>>().run<Deep *>(nullptr);
    List<>().both();
    List<int, List<>, List<char>>().both(1, 'c', List<>());
    enqueue<void () &&>(nullptr);
    enqueue<int(char) const>(nullptr);
    int number = 1;
    many(number, 'c', 2.0);
    many();
    spread(std::make_index_sequence<3>());
    with(number, [](int &value) { value++; });
    with(Hidden(), [](auto &&hidden) { hidden.seen(); });
    with(std::string("x"), [&](const std::string &text) { return [&text] { return text.size(); }(); });
    only(3);
    deduced(2.5f);
    apply<plain, true, 'x', -5>();
    member<nullptr, int, char>();
    Ops ops;
    ops += 1;
    static_cast<B<int>>(Ops());
    (void)(Ops() < Ops());
    Ops() << "x";
    delete new Ops();
    int four[4];
    Ops()("x", four, nullptr);
    pointers(nullptr, nullptr, nullptr, {}, nullptr);
    colored<Color::green, 7, -2>();
    static const std::string &once = *new std::string("x");
    return (int)(1.0_units + once.size());
}
