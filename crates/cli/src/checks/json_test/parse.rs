//! Reads a test, with the precedence that jq gives: `|` binds least, then `or`, `and`, comparisons, paths.

use serde_json::Value;

use super::{Compare, Expr, Mistake};

/// Nobody writes more brackets than this.
const DEEPEST: usize = 64;

type Read<T> = Result<T, (usize, Mistake)>;

/// Reads a whole text.
pub(super) fn read(text: &str) -> Read<Expr> {
    let mut reader = Reader { signs: text.chars().collect(), at: 0, depth: 0 };
    let expr = reader.pipe()?;
    reader.skip();
    match reader.peek() {
        None => Ok(expr),
        Some(_) => Err(reader.foreign()),
    }
}

struct Reader {
    signs: Vec<char>,
    at: usize,
    depth: usize,
}

impl Reader {
    fn peek(&self) -> Option<char> {
        self.signs.get(self.at).copied()
    }

    fn skip(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    /// Takes these signs if they are the next ones.
    fn take(&mut self, text: &str) -> bool {
        self.skip();
        let is_next = text.chars().enumerate().all(|(n, sign)| self.signs.get(self.at + n) == Some(&sign));
        self.at += if is_next { text.chars().count() } else { 0 };
        is_next
    }

    /// Takes this word if it is the next one, whole.
    fn take_word(&mut self, word: &str) -> bool {
        let from = self.at;
        let is_next = self.take(word) && !self.peek().is_some_and(is_of_name);
        if !is_next {
            self.at = from;
        }
        is_next
    }

    fn expected<T>(&self, what: &'static str) -> Read<T> {
        Err((self.at, Mistake::Expected(what)))
    }

    /// Something that does not belong here.
    fn foreign(&self) -> (usize, Mistake) {
        let rest: String = self.signs[self.at..].iter().collect();
        let known: [(&str, &'static str); 9] = [
            ("//", "`//`"),
            ("?", "`?`"),
            ("..", "`..`"),
            (",", "`,`"),
            ("+", "arithmetic"),
            ("-", "arithmetic"),
            ("*", "arithmetic"),
            ("/", "arithmetic"),
            ("=", "a single `=`"),
        ];
        match known.iter().find(|(sign, _)| rest.starts_with(sign)) {
            Some((_, name)) => (self.at, Mistake::NotHere(name)),
            None => (self.at, Mistake::Expected("`|`, a comparison, or the end")),
        }
    }

    fn pipe(&mut self) -> Read<Expr> {
        self.depth += 1;
        if self.depth > DEEPEST {
            return Err((self.at, Mistake::TooDeep));
        }
        let mut expr = self.or()?;
        while self.take("|") {
            expr = Expr::Pipe(Box::new(expr), Box::new(self.or()?));
        }
        self.depth -= 1;
        Ok(expr)
    }

    fn or(&mut self) -> Read<Expr> {
        let mut expr = self.and()?;
        while self.take_word("or") {
            expr = Expr::Or(Box::new(expr), Box::new(self.and()?));
        }
        Ok(expr)
    }

    fn and(&mut self) -> Read<Expr> {
        let mut expr = self.comparison()?;
        while self.take_word("and") {
            expr = Expr::And(Box::new(expr), Box::new(self.comparison()?));
        }
        Ok(expr)
    }

    fn comparison(&mut self) -> Read<Expr> {
        let left = self.term()?;
        let signs = [
            ("==", Compare::Equal),
            ("!=", Compare::Unequal),
            ("<=", Compare::LessOrEqual),
            (">=", Compare::GreaterOrEqual),
            ("<", Compare::Less),
            (">", Compare::Greater),
        ];
        match signs.into_iter().find(|(sign, _)| self.take(sign)) {
            None => Ok(left),
            Some((_, how)) => Ok(Expr::Compare(Box::new(left), how, Box::new(self.term()?))),
        }
    }

    /// A path, a value that is written down, a function, or something in brackets; and the steps behind it.
    fn term(&mut self) -> Read<Expr> {
        self.skip();
        let expr = match self.peek() {
            Some('.') => {
                self.at += 1;
                match self.peek() {
                    Some('.') => {
                        self.at -= 1;
                        return Err(self.foreign());
                    }
                    Some('"') => Expr::Field(Box::new(Expr::Itself), self.text()?),
                    Some(sign) if is_of_name(sign) && !sign.is_ascii_digit() => {
                        Expr::Field(Box::new(Expr::Itself), self.name())
                    }
                    Some(_) | None => Expr::Itself,
                }
            }
            Some('(') => {
                self.at += 1;
                let inner = self.pipe()?;
                if !self.take(")") {
                    return self.expected("`)`");
                }
                inner
            }
            Some('"') => Expr::Literal(Value::String(self.text()?)),
            Some(sign) if sign.is_ascii_digit() || sign == '-' => Expr::Literal(self.number()?),
            Some(sign) if is_of_name(sign) => self.function()?,
            Some(_) | None => return self.expected("a path such as `.items`, a value or a function"),
        };
        self.steps(expr)
    }

    fn steps(&mut self, mut expr: Expr) -> Read<Expr> {
        loop {
            // A step stands right behind what it is taken from.
            match self.peek() {
                Some('.') => {
                    self.at += 1;
                    let name = match self.peek() {
                        Some('"') => self.text()?,
                        Some('[') => continue,
                        Some(sign) if is_of_name(sign) && !sign.is_ascii_digit() => self.name(),
                        Some(_) | None => return self.expected("the name of a field"),
                    };
                    expr = Expr::Field(Box::new(expr), name);
                }
                Some('[') => {
                    self.at += 1;
                    self.skip();
                    expr = match self.peek() {
                        Some(']') => Expr::Each(Box::new(expr)),
                        Some('"') => Expr::Field(Box::new(expr), self.text()?),
                        Some(sign) if sign.is_ascii_digit() || sign == '-' => {
                            let from = self.at;
                            let index = self.number()?.as_i64();
                            let index = index.ok_or((from, Mistake::Expected("a whole number")))?;
                            Expr::Index(Box::new(expr), index)
                        }
                        Some(_) | None => return self.expected("a number, a text or `]`"),
                    };
                    self.skip();
                    if self.peek() == Some(':') {
                        return Err((self.at, Mistake::NotHere("a slice")));
                    }
                    if !self.take("]") {
                        return self.expected("`]`");
                    }
                }
                Some(_) | None => return Ok(expr),
            }
        }
    }

    fn function(&mut self) -> Read<Expr> {
        let from = self.at;
        let name = self.name();
        Ok(match name.as_str() {
            "true" => Expr::Literal(Value::Bool(true)),
            "false" => Expr::Literal(Value::Bool(false)),
            "null" => Expr::Literal(Value::Null),
            "length" => Expr::Length,
            "keys" => Expr::Keys,
            "type" => Expr::Type,
            "not" => Expr::Not,
            "any" => Expr::Any,
            "all" => Expr::All,
            "has" => Expr::Has(self.argument()?),
            "contains" => Expr::Contains(self.text_argument()?),
            "startswith" => Expr::StartsWith(self.text_argument()?),
            _ => return Err((from, Mistake::Unknown(name))),
        })
    }

    fn argument(&mut self) -> Read<Value> {
        if !self.take("(") {
            return self.expected("`(`");
        }
        self.skip();
        let value = match self.peek() {
            Some('"') => Value::String(self.text()?),
            Some(sign) if sign.is_ascii_digit() || sign == '-' => self.number()?,
            Some(_) | None => return self.expected("a text or a number"),
        };
        match self.take(")") {
            true => Ok(value),
            false => self.expected("`)`"),
        }
    }

    fn text_argument(&mut self) -> Read<String> {
        let from = self.at;
        match self.argument()? {
            Value::String(text) => Ok(text),
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                Err((from, Mistake::Expected("a text")))
            }
        }
    }

    fn name(&mut self) -> String {
        let from = self.at;
        while self.peek().is_some_and(is_of_name) {
            self.at += 1;
        }
        self.signs[from..self.at].iter().collect()
    }

    /// A text with its quotes, as JSON writes it.
    fn text(&mut self) -> Read<String> {
        let from = self.at;
        self.at += 1;
        loop {
            match self.peek() {
                Some('\\') => self.at += 2,
                Some('"') => break,
                Some(_) => self.at += 1,
                None => return Err((from, Mistake::OpenText)),
            }
        }
        self.at += 1;
        let written: String = self.signs[from..self.at].iter().collect();
        serde_json::from_str(&written).map_err(|_| (from, Mistake::Expected("a text as JSON writes it")))
    }

    fn number(&mut self) -> Read<Value> {
        let from = self.at;
        let is_of_number = |sign: char| sign.is_ascii_digit() || matches!(sign, '-' | '+' | '.' | 'e' | 'E');
        while self.peek().is_some_and(is_of_number) {
            self.at += 1;
        }
        let written: String = self.signs[from..self.at].iter().collect();
        serde_json::from_str(&written).map_err(|_| (from, Mistake::Expected("a number")))
    }
}

fn is_of_name(sign: char) -> bool {
    sign.is_alphanumeric() || sign == '_'
}
